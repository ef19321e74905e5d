"""Re-rankers, item by item, from the papers' algorithms; and FA*IR by enumeration."""

import itertools
import math
from fractions import Fraction


def det(items, share, k, method):
    """Algorithms 1 and 2 of Geyik et al.: the first k, then the others by score.

    `items` are (score, group) in any order, `share` exact fractions by group. An item
    is named by its number; of equal scores the first number is the best.
    """
    queues = queues_of(items, share)
    order, count = [], dict.fromkeys(share, 0)
    for j in range(1, min(k, len(items)) + 1):
        left = [g for g in share if queues[g]]
        below = [g for g in left if count[g] < math.floor(share[g] * j)]
        between = [g for g in left if count[g] < math.ceil(share[g] * j)]
        if below:
            choice = below
        elif not between:
            choice = left
        elif method == "det_greedy":
            choice = between
        else:
            urgency = {g: math.ceil(share[g] * j) / share[g] for g in between}
            if method == "det_relaxed":
                urgency = {g: math.ceil(value) for g, value in urgency.items()}
            choice = [g for g in between if urgency[g] == min(urgency.values())]
        group = min(choice, key=lambda g: by(items)(queues[g][0]))
        order.append(queues[group].pop(0))
        count[group] += 1
    return [*order, *sorted(set(range(len(items))) - set(order), key=by(items))]


def det_const_sort(items, share, k):
    """Algorithm 3 of Geyik et al.: the first k, then the others by score."""
    queues = queues_of(items, share)
    order, limit, j, placed = [], [], 0, dict.fromkeys(share, 0)
    n_places = min(k, len(items))
    while len(order) < n_places and any(queues[g] for g in share if share[g]):
        j += 1
        risen = [g for g in share if queues[g] and math.floor(share[g] * j) > placed[g]]
        for g in sorted(risen, key=lambda g: by(items)(queues[g][0])):
            if len(order) == n_places:
                break
            order.append(queues[g].pop(0))
            limit.append(j)
            placed[g] += 1
            at = len(order)  # places from 1
            while at > 1 and limit[at - 2] >= at:
                if by(items)(order[at - 2]) < by(items)(order[at - 1]):
                    break
                for table in (order, limit):
                    table[at - 2], table[at - 1] = table[at - 1], table[at - 2]
                at -= 1
    return [*order, *sorted(set(range(len(items))) - set(order), key=by(items))]


def queues_of(items, groups):
    """The numbers of the items of each group, the best first."""
    return {
        g: sorted((i for i, item in enumerate(items) if item[1] == g), key=by(items))
        for g in groups
    }


def by(items):
    """The key that sorts numbers of items by decreasing score, then by number."""
    return lambda i: (-items[i][0], i)


def tail(counts, j, share=None, pool=None):
    """P(X_g <= c_g for all protected groups g) among j places.

    X is multinomial with `share` by group; or drawn without replacement from `pool`,
    candidates by group, in which None stands for all others.
    """
    protected = list(counts)
    total = Fraction(0)
    for drawn in itertools.product(*(range(counts[g] + 1) for g in protected)):
        rest = j - sum(drawn)
        if rest < 0:
            continue
        if share is not None:
            chance = Fraction(math.factorial(j), math.factorial(rest))
            chance *= (1 - sum(share[g] for g in protected)) ** rest
            for g, n in zip(protected, drawn, strict=True):
                chance *= share[g] ** n / Fraction(math.factorial(n))
        else:
            chance = Fraction(math.comb(pool[None], rest))
            for g, n in zip(protected, drawn, strict=True):
                chance *= math.comb(pool[g], n)
            chance /= math.comb(sum(pool.values()), j)
        total += chance
    return total


def all_lists(protected, k, share=None, pool=None):
    """Yield every sequence of groups of k places, and its probability."""
    for groups in itertools.product([*protected, None], repeat=k):
        chance = Fraction(1)
        left = None if pool is None else dict(pool)
        for g in groups:
            if share is not None:
                chance *= share[g] if g is not None else 1 - sum(share.values())
            else:
                chance *= Fraction(left[g], sum(left.values()))
                left[g] -= 1
            if not chance:
                break
        if chance:
            yield groups, chance


def smallest_tail(groups, protected, **law):
    """The smallest tail over the prefixes of a list."""
    counts, smallest = dict.fromkeys(protected, 0), Fraction(1)
    for j, g in enumerate(groups, start=1):
        if g in counts:
            counts[g] += 1
        smallest = min(smallest, tail(counts, j, **law))
    return smallest


def failure(level, protected, k, **law):
    """Probability that a fair list has a prefix whose tail is at most the level."""
    return sum(
        chance
        for groups, chance in all_lists(protected, k, **law)
        if smallest_tail(groups, protected, **law) <= level
    )


def failure_nearest(alpha, protected, k, **law):
    """The level of one test, and the probability of failure nearest to alpha."""
    lists = [
        (smallest_tail(groups, protected, **law), chance)
        for groups, chance in all_lists(protected, k, **law)
    ]
    tails = {
        tail(dict(zip(protected, c, strict=True)), j, **law)
        for j in range(1, k + 1)
        for c in itertools.product(range(j + 1), repeat=len(protected))
        if sum(c) <= j
    }
    levels = [Fraction(0), *sorted(t for t in tails if 0 < t <= alpha)]
    failed = [sum(c for t, c in lists if t <= level) for level in levels]
    nearest = min(range(len(levels)), key=lambda i: (abs(failed[i] - alpha), i))
    return levels[nearest], failed[nearest]


def fa_ir(items, protected, k, level, **law):
    """FA*IR: the best item that leaves the prefix with a tail above the level."""
    left = sorted(range(len(items)), key=by(items))
    order, counts = [], dict.fromkeys(protected, 0)
    for j in range(1, min(k, len(items)) + 1):

        def passes(i, j=j):
            after = dict(counts)
            if items[i][1] in after:
                after[items[i][1]] += 1
            return tail(after, j, **law) > level

        chosen = next((i for i in left if passes(i)), left[0])
        left.remove(chosen)
        order.append(chosen)
        if items[chosen][1] in counts:
            counts[items[chosen][1]] += 1
    return [*order, *left]
