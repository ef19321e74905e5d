// Looks at HTML reports of an audit in a browser, and writes pictures of what it sees.
//
//   npm install puppeteer-core axe-core     (in a folder of your own)
//   node /path/to/report_page.mjs OUT report.html...
//
// Each report is opened at 1280 and 390 pixels and in the dark, checked by axe-core, and
// printed as PDF. It fails for a violation, an error of the page, a request to the network,
// or a page that scrolls sideways. CHROMIUM names the browser, by default Debian's.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";
const [out, ...files] = process.argv.slice(2);
fs.mkdirSync(out, { recursive: true });
const here = createRequire(path.join(process.cwd(), "package.json"));
const puppeteer = here("puppeteer-core");
const axe = fs.readFileSync(here.resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let bad = 0;
for (const file of files) {
  const name = path.basename(file, ".html");
  const page = await browser.newPage();
  const asked = [];
  page.on("request", (r) => { if (!r.url().startsWith("file:") && !r.url().startsWith("data:")) asked.push(r.url()); });
  page.on("pageerror", (e) => { console.log(name, "error", e.message); bad++; });
  page.on("console", (m) => { if (m.type() === "error") { console.log(name, "console", m.text()); bad++; } });
  await page.setBypassCSP(true);
  for (const [label, width, dark] of [["1280", 1280, false], ["390", 390, false], ["dark", 1280, true]]) {
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
    await page.goto("file://" + path.resolve(file));
    await page.screenshot({ path: `${out}/${name}-${label}.png`, fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) { console.log(name, label, "scrolls sideways:", wide); bad++; }
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run());
    for (const v of found.violations) { bad++; console.log(name, label, v.id, v.impact, v.nodes.length, v.nodes[0].html.slice(0, 150), v.nodes[0].failureSummary.slice(0, 300)); }
  }
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.pdf({ path: `${out}/${name}.pdf`, format: "A4", printBackground: true, margin: { top: "15mm", bottom: "15mm", left: "12mm", right: "12mm" } });
  if (asked.length) { console.log(name, "asks the network:", asked); bad++; }
  await page.close();
}
await browser.close();
console.log(bad ? `${bad} faults` : "no fault");
process.exit(bad ? 1 : 0);
