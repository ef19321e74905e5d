"""The one idea: a table of sums, one row per cluster, and a function of its totals.

A measure makes a table S of sums: a row per cluster q (a query or a user) and, for each
group, a few columns (say a numerator and a denominator). Columns that belong to all
groups are shared. The measure also names `finalize`, a function of the column totals.
Everything else follows from the table, without a line in any measure:

- the estimate, ``θ = finalize(Σ_q S_q)``;
- its variance by the jackknife, from ``θ_(-q) - θ`` for every row q that is left out;
- the degrees of freedom of the variance, from the share of the data in each row;
- the bootstrap, from the totals of rows that are drawn again;
- the comparison of two models, whose tables are joined column by column;
- the result on two parts of the data, whose totals and rows are added.

The files of this idea, in the order to read them:

- `finalize`: the functions of totals, and their slopes.
- `rows`: the table, `Rows`, stored as an entry per row and group that have data.
- `entries`: `Entries`, numbers by row and group such as ``θ_(-q) - θ``. A row without
  data of a group moves it through the shared columns only: that is a low rank.
- `remainder`: the sums of powers into which `compact` folds rows of a small share.
- `sums`: `ClusterSums`, the totals with their estimates, variances and sums of parts.
- `leverage`: degrees of freedom and effective numbers of clusters.
- `two_way`: errors over users and over the items that recur among them.
- `resampled`: rows drawn again, for the bootstrap and for metrics that fit a curve, and
  signs drawn at random, for tests where a few clusters hold most of the data.
- `metric`: `Metric`, the name and the functions of a metric, and what they mean.

`group_estimates.GroupEstimates` is the result that users see. It is made of `estimates`
with their `scales` for intervals and tests; `simultaneous` has intervals of all groups
at once, `power` plans the size of data, `formatting` makes text, `storage` JSON
(`older` reads what earlier states wrote), and `arrays` protects the arrays of results.
"""
