from coem.typing import Array

def instruction_set() -> str: ...
def keep_freed_memory() -> None: ...
def scores(indptr: Array, indices: Array, data: Array, table: Array, out: Array) -> None: ...
def posterior(
    log_joint: Array,
    log_weights: Array,
    allowed: Array | None,
    beta: float,
    hard: bool,
    evidence: Array,
    objective: Array,
    resp: Array,
) -> None: ...
def closeness(rows: Array, means: Array, constant: float, out: Array) -> None: ...
def assign(
    log_joint: Array,
    log_weights: Array,
    allowed: Array | None,
    evidence: Array,
    objective: Array,
    labels: Array,
) -> None: ...
def sum_by_label(rows: Array, labels: Array, weights: Array | None, sums: Array) -> None: ...
def nearest(
    indptr: Array,
    indices: Array,
    data: Array,
    table: Array,
    scale: Array,
    first: int,
    last: int,
    labels: Array,
    values: Array,
) -> None: ...
def count_active(resp: Array) -> list[int]: ...
def list_active(resp: Array, first: int, places: Array, rows: Array, weights: Array) -> None: ...
def accumulate_list(
    indptr: Array,
    indices: Array,
    data: Array,
    rows: Array,
    weights: Array,
    lo: int,
    hi: int,
    sums: Array,
) -> None: ...
def sum_lists(
    indptr: Array,
    indices: Array,
    data: Array,
    rows: Array,
    weights: Array,
    offsets: Array,
    fresh: Array,
    first: int,
    last: int,
    sums: Array,
    squares: Array,
) -> None: ...
def move_rows(
    indptr: Array,
    indices: Array,
    data: Array,
    rows: Array,
    from_: Array,
    to: Array,
    weights: Array,
    first: int,
    last: int,
    sums: Array,
    table: Array,
    squares: Array,
) -> None: ...
def accumulate_tile(
    indptr: Array,
    indices: Array,
    data: Array,
    resp: Array,
    lo: int,
    hi: int,
    first: int,
    last: int,
    sorted: bool,
    tile: Array,
) -> None: ...
def fill_table(
    sums: Array,
    lo: int,
    hi: int,
    alpha: float,
    scale: Array,
    floor: float | None,
    table: Array,
    n_components: int,
    first: int,
) -> float: ...
def set_bounds(scores: Array, columns: Array | None, level: Array, gaps: Array) -> None: ...
def rises(before: Array, after: Array, lo: int, hi: int, rise: Array) -> None: ...
def chances(
    indptr: Array,
    indices: Array,
    data: Array,
    table: Array,
    rise: Array,
    log_weights: Array,
    allowed: Array | None,
    blank: Array | None,
    reach: float,
    level: Array,
    gaps: Array,
    first: int,
    offsets: Array,
    units: Array,
    found: Array,
) -> int: ...
def near(joint: Array, reach: float, offsets: Array, units: Array, found: Array) -> bool: ...
def list_rows(resp: Array, offsets: Array, components: Array, values: Array) -> None: ...
def touch(
    indptr: Array,
    indices: Array,
    data: Array,
    rows: Array,
    weights: Array,
    lo: int,
    hi: int,
    sums: Array,
    words: Array,
) -> int: ...
def collect(sums: Array, words: Array, found: Array, n: int) -> None: ...
def fill_nothing(
    lo: int, hi: int, alpha: float, scale: Array, floor: float, table: Array
) -> None: ...
def fill_pairs(
    words: Array, sums: Array, alpha: float, scale: Array, floor: float, j: int, table: Array
) -> float: ...
def table_sum(table: Array, lo: int, hi: int) -> float: ...
def sparse_scores(
    indptr: Array,
    indices: Array,
    data: Array,
    unseen: Array,
    places: Array,
    common: Array,
    offsets: Array,
    components: Array,
    cells: Array,
    out: Array,
) -> None: ...
def count_words(
    indptr: Array, indices: Array, data: Array, offsets: Array, entries: Array, pairs: Array
) -> None: ...
def sum_words(
    indptr: Array,
    indices: Array,
    data: Array,
    offsets: Array,
    components: Array,
    values: Array,
    lo: int,
    sorted: bool,
    entries: Array,
    k: int,
    found: Array,
    owners: Array,
    sums: Array,
) -> int: ...
def fill_sparse(
    from_offsets: Array,
    owners: Array,
    sums: Array,
    alpha: float,
    scale: Array,
    floor: float,
    least: float,
    lo: int,
    hi: int,
    unseen: Array,
    places: Array,
    common: Array,
    offsets: Array,
    components: Array,
    cells: Array,
) -> None: ...
def agglomerate(
    cells: Array, linkage: int, children: Array, distances: Array, sizes: Array
) -> None: ...
def aspect_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    own: Array,
    other: Array,
    weights: Array,
    lo: int,
    hi: int,
    ratios: Array,
    sums: Array,
    totals: Array,
) -> float: ...
def aspect_columns(
    indptr: Array,
    indices: Array,
    places: Array,
    ratios: Array,
    own: Array,
    other: Array,
    weights: Array,
    lo: int,
    hi: int,
    scale: Array,
    shift: Array,
    out: Array,
) -> None: ...
def aspect_rescale(
    table: Array, lo: int, hi: int, scale: Array, shift: Array, out: Array
) -> None: ...
def aspect_power(table: Array, lo: int, hi: int, beta: float, out: Array) -> None: ...
def aspect_evidence(
    indptr: Array,
    indices: Array,
    values: Array,
    own: Array,
    other: Array,
    weights: Array,
    lo: int,
    hi: int,
) -> float: ...
def aspect_fold_in(
    indptr: Array,
    indices: Array,
    values: Array,
    other: Array,
    weights: Array,
    lo: int,
    hi: int,
    max_iter: int,
    tol: float,
    shares: Array,
) -> None: ...
def aspect_log_sum(table: Array, k: int, lo: int, hi: int) -> float: ...
def forward_backward(
    log_prob: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None,
    beta: float,
    offsets: Array,
    weights: Array | None,
    lo: int,
    hi: int,
    starts: Array,
    transitions: Array,
    objective: Array,
    resp: Array,
) -> None: ...
def forward(
    log_prob: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None,
    beta: float,
    offsets: Array,
    lo: int,
    hi: int,
    objective: Array,
) -> None: ...
def viterbi(
    log_prob: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None,
    offsets: Array,
    weights: Array | None,
    lo: int,
    hi: int,
    starts: Array,
    transitions: Array,
    objective: Array,
    states: Array,
    resp: Array | None,
) -> None: ...
def structure(indptr: Array, indices: Array, n_columns: int) -> int: ...

class WordCounter:
    n_rows: int
    n_probes: int
    def __init__(self, min_n: int, max_n: int, seed: int | None = None) -> None: ...
    def stop(self, offsets: Array, data: Array) -> None: ...
    def know(self, offsets: Array, data: Array) -> None: ...
    def text(
        self, offsets: Array, data: Array, valid: Array | None, rule: Array, lo: int, hi: int
    ) -> None: ...
    def items(self, starts: Array, offsets: Array, data: Array) -> None: ...
    def sort(self) -> None: ...
    def count_kept(self, columns: Array, n_kept: Array) -> None: ...
    def fill(self, columns: Array, indptr: Array, indices: Array, data: Array) -> None: ...

def merge_words(counters: list[WordCounter]) -> tuple[Array, Array, Array, Array]: ...
