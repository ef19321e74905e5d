"""Reports: audits, out-of-fold audits, and before and after a mitigation."""
