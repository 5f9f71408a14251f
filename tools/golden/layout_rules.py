"""The token layouts `anncur`, `hard-nce` and `blink` as pure functions.

A second opinion on the Rust crate: written from the prose of the published
rules before the Rust was read; where the two differed, the docstring says what
was settled. Pieces go in as lists of ids, a `Row` comes out. Each
function has two modes: `compat=False` mends the edges, `compat=True` keeps the
published quirks.

Where the rules leave a choice, the reading taken is named at the function.
"""

from dataclasses import dataclass, field
from math import ceil

PAD = 0


@dataclass(frozen=True)
class Specials:
    """Ids of the tokens a layout sets by itself."""

    cls: int
    sep: int
    start: int
    end: int
    tag: int


@dataclass
class Row:
    """A finished sequence. `marks` are indices of mention start, mention end and tag, or None."""

    ids: list = field(default_factory=list)
    types: list = field(default_factory=list)
    positions: list = field(default_factory=list)
    marks: tuple = (None, None, None)
    truncated: bool = False


# While a row is built, a token is a pair (id, role); the role travels with it
# through every slice, so marks need no search that literal text could fool.


def _plain(ids):
    return [(token, None) for token in ids]


def _finish(tokens, types, positions, truncated):
    where = {role: index for index, (_, role) in enumerate(tokens) if role}
    return Row(
        [token for token, _ in tokens],
        list(types),
        list(positions),
        tuple(where.get(role) for role in ("start", "end", "tag")),
        truncated,
    )


def _single(tokens, truncated):
    return _finish(tokens, [0] * len(tokens), range(len(tokens)), truncated)


def _marked(mention, specials):
    return [(specials.start, "start"), *_plain(mention), (specials.end, "end")]


def _wrapped(body, specials):
    return [(specials.cls, None), *body, (specials.sep, None)]


def _dropped(given, kept_tokens):
    """Whether pieces were lost: `given` counts what should be there, marks and all."""
    return len(kept_tokens) < given


# ---------------------------------------------------------------- anncur, blink


def _quota_row(left, mention, right, limit, specials, bare=False, slices=False):
    """`[CLS]` left, marked mention, right `[SEP]` in `limit` tokens; (tokens, truncated).

    left quota = floor((limit - m) / 2) - 1, right quota = limit - m - left - 2
    with m the marked mention's length; what one side leaves of its quota goes
    to the other when that one exceeds its own.

    The mention is cut so that `[CLS]`, both marks and `[SEP]` fit, unless
    `slices`: then quotas of zero or less are slice bounds as they are, and the
    row is cut to `limit` at the end. `bare` leaves out the mention and its marks.
    """
    kept_mention = mention if slices else mention[: limit - 4]
    block = [] if bare else _marked(kept_mention, specials)
    m = len(block)
    left_quota = (limit - m) // 2 - 1
    right_quota = limit - m - left_quota - 2
    if len(left) <= left_quota and len(right) > right_quota:
        right_quota += left_quota - len(left)
    elif len(left) > left_quota and len(right) <= right_quota:
        left_quota += right_quota - len(right)
    if slices:
        before = left[-left_quota:]
    else:
        before = left[len(left) - min(left_quota, len(left)) :]
    body = _plain(before) + block + _plain(right[:right_quota])
    tokens = _wrapped(body, specials)[:limit]
    given = len(left) + len(right) + 2 + (0 if bare else len(mention) + 2)
    return tokens, _dropped(given, tokens)


def _tagged_row(title, text, limit, specials, keep_tag):
    """`[CLS]` title, tag, text `[SEP]` in `limit` tokens; (tokens, truncated).

    Title, tag and text are cut to `limit - 2`. With `keep_tag` a long title is
    cut one shorter, so that the tag stays. An item without a title still has
    the tag, first.
    """
    room = limit - 2
    kept_title = title[: room - 1] if keep_tag else title
    body = _plain(kept_title) + [(specials.tag, "tag")] + _plain(text)
    tokens = _wrapped(body[:room], specials)
    return tokens, _dropped(len(title) + len(text) + 3, tokens)


def _without_pads(tokens, types, positions):
    """The published mask is "id is not 0": a `[PAD]` written in a text is not seen either."""
    kept = [i for i, (token, _) in enumerate(tokens) if token != PAD]
    return [tokens[i] for i in kept], [types[i] for i in kept], [positions[i] for i in kept]


def _run_on(query, item):
    """Query row and item row without its `[CLS]`, positions without a gap."""
    (query_tokens, query_cut), (item_tokens, item_cut) = query, item
    tokens = query_tokens + item_tokens[1:]
    types = [0] * len(query_tokens) + [1] * (len(item_tokens) - 1)
    return _finish(tokens, types, range(len(tokens)), query_cut or item_cut)


def _padded_between(query, item, max_query, max_length):
    """The published pair.

    The query row is padded to `max_query`, so the item begins at that position;
    the whole is cut to `max_length`; segment 1 is for non-zero ids from
    `max_query` on; padding is masked, hence left out here.
    """
    (query_tokens, query_cut), (item_tokens, item_cut) = query, item
    padded = query_tokens + [(PAD, None)] * (max_query - len(query_tokens))
    whole = padded + item_tokens[1:]
    row = whole[:max_length]
    types = [int(at >= max_query and token != PAD) for at, (token, _) in enumerate(row)]
    kept = _without_pads(row, types, range(len(row)))
    return _finish(*kept, query_cut or item_cut or len(row) < len(whole))


def _masked_single(tokens, truncated, compat):
    """A row alone. The published mask is taken to hold here as in the pair."""
    if not compat:
        return _single(tokens, truncated)
    size = len(tokens)
    return _finish(*_without_pads(tokens, [0] * size, range(size)), truncated)


# An empty mention string (`has_mention=False`) has no marks as published; a string
# that merely has no pieces keeps them. Mended, the marks are always there: the
# [EMB] head reads its query vector from them.


def _anncur_rows(left, mention, right, max_query, specials, has_mention, compat):
    bare = compat and not has_mention
    return _quota_row(left, mention, right, max_query, specials, bare, slices=compat)


def _blink_rows(left, mention, right, max_query, specials, has_mention, compat):
    bare = compat and not has_mention
    return _quota_row(left, mention, right, max_query, specials, bare)


def anncur_query(left, mention, right, max_query, specials, *, has_mention=True, compat=False):
    """Mention row of ANNCUR, for a dual encoder."""
    row = _anncur_rows(left, mention, right, max_query, specials, has_mention, compat)
    return _masked_single(*row, compat)


def anncur_item(title, text, max_item, specials, *, compat=False):
    """Entity row of ANNCUR; published, a long title loses the tag."""
    return _masked_single(*_tagged_row(title, text, max_item, specials, not compat), compat)


def anncur_pair(
    left, mention, right, title, text, max_query, max_item, max_length, specials,
    *, has_mention=True, compat=False,
):  # fmt: skip
    """Mention row and entity row joined. Limits that do not fit together are refused."""
    if max_query + max_item - 1 > max_length:
        raise ValueError(f"rows of {max_query} and {max_item} do not fit into {max_length}")
    query = _anncur_rows(left, mention, right, max_query, specials, has_mention, compat)
    item = _tagged_row(title, text, max_item, specials, not compat)
    return _padded_between(query, item, max_query, max_length) if compat else _run_on(query, item)


def blink_query(left, mention, right, max_query, specials, *, has_mention=True, compat=False):
    """Context row of BLINK: ANNCUR's quotas.

    A mention that is too long is cut in both modes: where ANNCUR slices oddly
    BLINK stops at an assertion, so there is nothing published to keep.
    """
    row = _blink_rows(left, mention, right, max_query, specials, has_mention, compat)
    return _masked_single(*row, compat)


def blink_item(title, text, max_item, specials, *, compat=False):
    """Candidate row of BLINK: cut at `max_item - 2` in both modes, tag or not."""
    return _masked_single(*_tagged_row(title, text, max_item, specials, False), compat)


def blink_pair(
    left, mention, right, title, text, max_query, max_item, max_length, specials,
    *, has_mention=True, compat=False,
):  # fmt: skip
    """Context row and candidate row joined; `max_length` is 256 unless less is asked for.

    Limits that do not fit together are refused; published, the pair is cut.
    """
    if not compat and max_query + max_item - 1 > max_length:
        raise ValueError(f"rows of {max_query} and {max_item} do not fit into {max_length}")
    query = _blink_rows(left, mention, right, max_query, specials, has_mention, compat)
    item = _tagged_row(title, text, max_item, specials, False)
    return _padded_between(query, item, max_query, max_length) if compat else _run_on(query, item)


# --------------------------------------------------------------------- hard-nce


def last_words(text, count):
    """The last `count` words of a text, joined by single spaces; (text, whether words were lost)."""
    words = text.split()
    return " ".join(words[max(len(words) - count, 0) :]), len(words) > count


def first_words(text, count):
    """The first `count` words of a text, joined by single spaces; (text, whether words were lost)."""
    words = text.split()
    return " ".join(words[:count]), len(words) > count


def retriever_words(max_query):
    """Words of context on each side that the retriever looks at: one above its budget."""
    return max_query - 2 + 1


def reranker_budgets(max_length):
    """(mention, candidate) budgets of the reranker, in pieces and in words: 126 and 127 at 256."""
    mention = (max_length - 3) // 2
    return mention, max_length - 3 - mention


def hard_nce_query(left, mention, right, max_query, specials, *, compat=False):
    """Mention row of the retriever; contexts are already limited to `retriever_words`.

    A mention of the whole budget or more stands alone, cut and without marks;
    one piece less and the final cut takes the end mark: the rules say so and
    name no fix, so both modes do it. Mended: the left slice is never below 0.
    """
    budget = max_query - 2
    if len(mention) >= budget:
        # Marks left out count as cut, like the tag of an item.
        return _single(_wrapped(_plain(mention[:budget]), specials), True)
    rest = budget - len(mention) - 2
    half = rest // 2
    if len(left) <= half:
        before = left
    else:
        keep = half if len(right) > half else rest - len(right)
        if compat:
            before = left[-keep:]
        else:
            before = left[max(len(left) - max(keep, 0), 0) :]
    body = _plain(before) + _marked(mention, specials) + _plain(right)
    body = body[:budget]
    given = len(left) + len(mention) + len(right) + 2
    return _single(_wrapped(body, specials), _dropped(given, body))


def hard_nce_item(title, text, max_item, specials, *, compat=False):
    """Entity row of the retriever: cut to the budget in both modes, tag or not."""
    del compat
    return _single(*_tagged_row(title, text, max_item, specials, False))


def hard_nce_pair(
    left, mention, right, text, max_length, specials, *, mark_mention=False, compat=False
):
    """Row of the reranker; contexts and text are already limited to `reranker_budgets` words.

    The candidate is its text alone, without title or tag, in both modes. A
    mention that fills its budget is cut and stands alone (its end mark is
    lost). An empty text is allowed. Published: filled up to `max_length` with
    `[PAD]` of type 0, which is attended to.
    """
    mention_budget, candidate_budget = reranker_budgets(max_length)
    block = _marked(mention, specials) if mark_mention else _plain(mention)
    rest = mention_budget - len(block)
    if rest <= 0:
        window = block[:mention_budget]
    else:
        half = ceil(rest / 2)
        keep = len(left)
        if len(left) >= half:
            keep = half if len(right) >= half else rest - len(right)
        before = left[max(len(left) - keep, 0) :]
        window = (_plain(before) + block + _plain(right))[:mention_budget]
    candidate = _plain(text[:candidate_budget])
    query_tokens = _wrapped(window, specials)
    item_tokens = candidate + [(specials.sep, None)]
    tokens = query_tokens + item_tokens
    types = [0] * len(query_tokens) + [1] * len(item_tokens)
    truncated = _dropped(len(left) + len(block) + len(right), window) or _dropped(len(text), candidate)
    if compat:
        missing = max_length - len(tokens)
        tokens = tokens + [(PAD, None)] * missing
        types = types + [0] * missing
    return _finish(tokens, types, range(len(tokens)), truncated)
