"""The one idea: a table of sums, one row per cluster, and a function of its totals.

A measure makes a table S of sums: a row per cluster q (a query or a user) and, for each
group, a few columns (say a numerator and a denominator). Columns that belong to all
groups are shared. The measure also names `finalize`, a function of the column totals.
Everything else follows from the table, without a line in any measure:

- the estimate, ``θ = finalize(Σ_q S_q)``;
- its variance by the jackknife, from ``θ - θ_(-q)`` for every row q that is left out;
- the degrees of freedom of the variance, from the share of the data in each row;
- the bootstrap, from the totals of rows that are drawn again;
- the comparison of two models, whose tables are joined column by column;
- the result on two parts of the data, whose totals and rows are added.

The clicks and views of three queries, in one group, show all there is to it:

>>> import numpy as np
>>> from skrankfair.metrics import GroupEstimates
>>> S = np.array([[3.0, 4.0], [1.0, 5.0], [4.0, 6.0]])
>>> def finalize(totals):
...     return totals[..., 0] / totals[..., 1]
>>> estimate = finalize(S.sum(axis=0))
>>> without = finalize(S.sum(axis=0) - S)
>>> Q = len(S)
>>> error = np.sqrt((Q - 1) / Q * ((without - estimate) ** 2).sum())
>>> result = GroupEstimates.from_sums(S[:, None], finalize, groups=["all"], name="ctr")
>>> np.allclose([estimate, error], [result.estimate[0], result.standard_error[0]])
True

In the package `finalize(by_group, shared)` has a second argument, the shared columns. A
*support* says how much data a row has of a group, such as its pairs. A metric `needs`
some of the supports: without them it is undefined, and the share of a row in them is
the leverage behind the degrees of freedom. (`Metric.support` is the one that results
show.) A *stratum* is a sample of independent rows: clusters are one, and the items of
one list are two, the members of a group and all others. The *influence* of a row is
what the estimate changes without it, ``θ - θ_(-q)``. A row is *large* that has more
than 1 in 400 of the data of a group; `compact` keeps large rows and folds the others.
The *parts* of a function of totals are the two whose difference or mean it is, and the
*sides* of a comparison are what it is between: a group and the rest, or two samples.

What is added to this serves two ends. With 10,000 groups no cluster has data of most of
them: the table stores numbers only where a cluster has data of a group, and elsewhere
the jackknife is the product of two thin matrices (`Entries`). With more rows than
memory, `compact` replaces the rows that hold little of the data by sums of their powers
(`Remainder`).

The table and what follows from it, in the order to read them:

- `finalize`: the functions of totals, and their slopes.
- `rows`: the table, `Rows`, stored as an entry per row and group that have data.
- `entries`: `Entries`, numbers by row and group such as ``θ - θ_(-q)``. A row without
  data of a group moves it through the shared columns only: that is a low rank.
- `sums`: `ClusterSums`, the totals with their estimates, variances and sums of parts.
  Begin with `estimate`, `influence` and `products`, which are the lines above.
- `remainder`: the sums of powers into which `compact` folds rows of a small share.
- `leverage`: how well a variance is known: degrees of freedom, effective numbers of
  clusters, and what a small group lacks of rare events. These are the one thing that a
  table does not say of itself: another side says it, such as the rest.
- `two_way`: errors over users and over the items that recur among them, by a subclass
  of `ClusterSums` with variances of its own.
- `resampled`: rows drawn again, for the bootstrap and, by another subclass, for metrics
  that fit a curve.

The results that users see:

- `metric`: `Metric`, the name and the functions of a metric, and what they mean.
- `scales`: intervals and tests of shares, ratios, losses and their differences.
- `wild`: signs drawn at random, for tests where a few clusters hold most of the data.
- `estimates`: numbers with errors, which the values of groups and contrasts are.
- `group_estimates`: `GroupEstimates`, the result of every metric, made of all these.
- `simultaneous`: disparities and intervals of all groups at once.
- `power`: the size of data that a gap needs.
- `formatting` makes text, `storage` JSON (`older` reads what earlier states wrote), and
  `arrays` protects the arrays of results.

From a call to the printed line: `pairwise_accuracy` reads its columns (`measured` of
``_inputs.ranking``); `accuracy_estimates` names a `Metric`, and `pair_sums` makes the
`ClusterSums`. A `GroupEstimates` holds both, and computes `estimate`, `standard_error`
and `df` when they are asked for. `estimates.estimates_of` puts them on a scale, whose
`ends` are the interval, and `formatting` prints it.

To add a metric, begin with one that is like it: ``metrics/_rates.py`` sums over rows,
``metrics/_ndcg.py`` over lists, and ``metrics/_pairwise.py`` over pairs. An interval of
another kind is a scale, which `estimates.estimates_of` chooses, and an engine that
reads data is a source of ``distributed``.
"""
