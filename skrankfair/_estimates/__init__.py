"""The one idea: a table of sums, one row per cluster, and a function of its totals.

A measure fills `rows.Rows` with sums by cluster and group (shared columns belong to
all groups), and names its function of the column totals in a `metric.Metric`; such
functions, and their slopes, are in `finalize`. `sums.ClusterSums` takes the totals and
leaves out each row in turn: what that changes are the `entries.Entries` of an array of
rows and groups, values where a row has data of a group and a low rank elsewhere, and
their sums of products are the variances and covariances. From the same shares of the
data `leverage` has the degrees of freedom. Sums of parts add up; `compact` keeps the
large rows and folds the others into the power sums of a `remainder.Remainder`;
`two_way` has rows of users and of the items that recur among them, and `resampled`
draws rows again, for the bootstrap and for metrics that fit a curve.
`group_estimates.GroupEstimates` is the result that users see, made of `estimates` with
their `scales` and tests; `simultaneous` has intervals of all groups at once, `power`
plans, `formatting` words, and `storage` JSON; `arrays` keeps the arrays of results from
being written to, and from being larger than memory.
"""
