#include "words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

namespace coem {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string_view;
using std::uint32_t;
using std::uint64_t;

namespace {

constexpr int64_t kLongest = std::numeric_limits<int32_t>::max();  // bytes or items of a row

size_t at(int64_t i) { return static_cast<size_t>(i); }

template <class T> uint64_t load(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
}

uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

bool is_ascii(string_view text) {
    const char* p = text.data();
    const char* end = p + text.size();
    uint64_t any = 0;
    for (; end - p >= 64; p += 64) {
        for (int i = 0; i < 64; i += 8) any |= load<uint64_t>(p + i);
    }
    for (; p < end; ++p) any |= static_cast<unsigned char>(*p) & 0x80u;
    return !(any & 0x8080808080808080u);
}

// The code point at `p` and its number of bytes; -1 and 1 where it is no UTF-8.
struct Decoded {
    int32_t code;
    int n;
};

Decoded decode(const char* p, const char* end) {
    const auto byte = [&](int i) { return static_cast<unsigned char>(p[i]); };
    const int first = byte(0);
    if (first < 0x80) return {first, 1};
    const int n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || end - p < n) return {-1, 1};
    int32_t code = first & (0xFF >> (n + 1));
    for (int i = 1; i < n; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {-1, 1};
        code = code << 6 | (byte(i) & 0x3F);
    }
    const bool wide = n == 3 ? code >= 0x800 : n == 2 || code >= 0x10000;
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return wide && !surrogate && code <= 0x10FFFF ? Decoded{code, n} : Decoded{-1, 1};
}

char* encode(int32_t code, char* out) {
    const auto put = [&](int32_t bits) { *out++ = static_cast<char>(bits); };
    const auto tail = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6), tail(0);
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12), tail(6), tail(0);
    } else {
        put(0xF0 | code >> 18), tail(12), tail(6), tail(0);
    }
    return out;
}

// A word of one code point is no token; the first byte says how many bytes that is.
bool has_two_characters(string_view word) {
    const unsigned first = static_cast<unsigned char>(word[0]);
    const size_t one = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return word.size() > one;
}

uint64_t prefix(string_view word) {
    char head[8] = {};
    word.copy(head, sizeof head);
    uint64_t value = load<uint64_t>(head);
    if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
    return value;
}

}  // namespace

string_view Strings::operator[](int64_t i) const {
    const int64_t first = offsets[i], last = offsets[i + 1];
    if (first < 0 || last < first || last > n_bytes) {
        throw std::invalid_argument("offsets point beyond the data");
    }
    return {data + first, at(last - first)};
}

uint64_t random_seed() {
    static const uint64_t seed = [] {
        std::random_device device;  // the operating system's
        return uint64_t{device()} << 32 | device();
    }();
    return seed;
}

// The numbers of SplitMix64. One seed makes four secrets that look independent.
Hasher::Hasher(uint64_t seed) {
    for (uint64_t& secret : secret_) {
        uint64_t z = seed += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        secret = (z ^ z >> 31) | 1;  // never 0, and a product with it loses no bits
    }
}

// Overlapping loads, so that no byte beyond the word is read.
//
// Every piece of a word meets a secret before it is multiplied, as in wyhash. Two words collide if
// two products agree, and which words those are changes with the secrets: to choose them, one has
// to guess 64 bits. (With constants in the place of secrets one can solve for them.)
Key Hasher::operator()(string_view word) const {
    const char* p = word.data();
    const size_t n = word.size();
    Key key{word, 0, 0, n};
    if (n >= 8) {
        key.head = load<uint64_t>(p);
        key.tail = load<uint64_t>(p + n - 8);
        for (size_t i = 8; i + 8 < n; i += 8) {
            key.hash = mix(key.hash ^ load<uint64_t>(p + i) ^ secret_[3], secret_[2]);
        }
    } else if (n >= 4) {
        key.head = load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4);
    } else if (n > 0) {
        const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])}; };
        key.head = byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1);
    }
    key.hash = mix(key.hash ^ mix(key.head ^ secret_[0], key.tail ^ secret_[1]), secret_[2]);
    return key;
}

WordTable::WordTable(const Hasher& hasher) : hasher_(hasher), slots_(1024), starts_{0} {}

// The slot of a word, or the free one where it belongs.
size_t WordTable::place(const Key& key) const {
    for (size_t i = key.hash & mask();; i = (i + 1) & mask()) {
        const Slot& slot = slots_[i];
        if (slot.id < 0) return i;
        const bool alike = slot.head == key.head && slot.tail == key.tail;
        if (!alike || slot.length != key.word.size()) continue;
        if (slot.length <= 16 || word(slot.id) == key.word) return i;
    }
}

WordTable::Slot& WordTable::add(const Key& key) {
    size_t i = place(key);
    if (slots_[i].id >= 0) return slots_[i];
    if (starts_.size() * 2 > slots_.size()) {
        grow();
        i = place(key);
    }
    const int32_t id = size();
    if (id == kLongest) throw std::length_error("more than 2^31 - 1 different words");
    if (key.word.size() > at(kLongest)) throw std::length_error("a word of more than 2^31 bytes");
    bytes_.insert(bytes_.end(), key.word.begin(), key.word.end());
    starts_.push_back(bytes_.size());
    Slot& slot = slots_[i];
    slot.head = key.head, slot.tail = key.tail;
    slot.length = static_cast<uint32_t>(key.word.size()), slot.id = id;
    return slot;
}

void WordTable::grow() {
    std::vector<Slot> old(slots_.size() * 2);
    std::swap(old, slots_);
    for (const Slot& slot : old) {
        if (slot.id < 0) continue;
        size_t i = hasher_(word(slot.id)).hash & mask();
        while (slots_[i].id >= 0) i = (i + 1) & mask();
        slots_[i] = slot;
    }
}

int64_t WordTable::n_probes() const {
    int64_t total = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].id < 0) continue;
        total += static_cast<int64_t>((i - hasher_(word(slots_[i].id)).hash) & mask()) + 1;
    }
    return total;
}

WordCounter::WordCounter(int64_t min_n, int64_t max_n, uint64_t seed)
    : min_n_(min_n), max_n_(max_n), simple_(max_n == 1), hasher_(seed), stop_(hasher_),
      words_(hasher_) {}

void WordCounter::stop(const Strings& words) {
    for (int64_t i = 0; i < words.n; ++i) stop_.add(hasher_(words[i]));
    simple_ = simple_ && stop_.size() == 0;
}

void WordCounter::know(const Strings& words) {
    for (int64_t i = 0; i < words.n; ++i) {
        if (words_.add(hasher_(words[i])).id != i) {
            throw std::invalid_argument("a word is there twice");
        }
    }
    fixed_ = true;
}

// Words stay where they are until the end of their row, so that some may wait for their slots.
void WordCounter::count(string_view word) {
    if (n_waiting_ == waiting_.size()) flush();
    Key& key = waiting_[n_waiting_++] = hasher_(word);
    words_.prefetch(key);
}

void WordCounter::flush() {
    const auto row = static_cast<int32_t>(ends_.size());
    const size_t start = ends_.empty() ? 0 : at(ends_.back());
    for (size_t i = 0; i < n_waiting_; ++i) {
        WordTable::Slot& slot = fixed_ ? words_.find(waiting_[i]) : words_.add(waiting_[i]);
        if (slot.id < 0) continue;
        if (slot.row == row) {
            ++entries_[start + slot.place].count;
            continue;
        }
        slot.row = row;
        slot.place = static_cast<uint32_t>(entries_.size() - start);
        entries_.push_back({slot.id, 1});
    }
    n_waiting_ = 0;
}

// Tokens that are left lie side by side with a blank between, so that an n-gram is a piece of that.
void WordCounter::token(string_view word) {
    if (simple_) return count(word);
    if (stop_.size() && stop_.find(hasher_(word)).id >= 0) return;
    if (!tokens_.empty()) joined_.push_back(' ');
    const size_t start = joined_.size();
    joined_.insert(joined_.end(), word.begin(), word.end());
    tokens_.push_back({start, joined_.size()});
}

void WordCounter::end_row() {
    const size_t n_tokens = tokens_.size();
    for (size_t n = at(min_n_); n <= std::min(at(max_n_), n_tokens); ++n) {
        for (size_t i = 0; i + n <= n_tokens; ++i) {
            const size_t start = tokens_[i].start;
            count({joined_.data() + start, tokens_[i + n - 1].end - start});
        }
    }
    flush();
    if (ends_.size() == at(kLongest)) throw std::length_error("more than 2^31 - 1 rows");
    tokens_.clear();
    joined_.clear();
    ends_.push_back(static_cast<int64_t>(entries_.size()));
}

// Write a row to `lowered_` with every character by the rule and 0 for those that are in no word.
size_t WordCounter::lower(string_view row, std::span<const int32_t> rule) {
    const size_t room = 4 * row.size();  // no rule makes more than four bytes of one
    if (lowered_.size() < room) lowered_.resize(room);
    char* out = lowered_.data();
    for (const char *p = row.data(), *end = p + row.size(); p < end;) {
        const Decoded got = decode(p, end);
        p += got.n;
        const int32_t code = got.code < 0 || at(got.code) >= rule.size() ? -1 : rule[at(got.code)];
        out = encode(std::max(code, 0), out);
    }
    return static_cast<size_t>(out - lowered_.data());
}

void WordCounter::text(const Strings& rows, const std::uint8_t* valid,
                       std::span<const int32_t> rule, int64_t lo, int64_t hi) {
    char ascii[128];
    for (size_t c = 0; c < 128; ++c) ascii[c] = static_cast<char>(std::max(rule[c], 0));
    for (int64_t i = lo; i < hi; ++i) {
        const string_view row = valid && !valid[i] ? string_view{} : rows[i];
        if (row.size() > at(kLongest)) throw std::length_error("a row has more than 2^31 bytes");
        size_t n = row.size();
        if (is_ascii(row)) {
            if (lowered_.size() < n) lowered_.resize(n);
            for (size_t j = 0; j < n; ++j) lowered_[j] = ascii[static_cast<unsigned char>(row[j])];
        } else {
            n = lower(row, rule);
        }
        const char* p = lowered_.data();
        for (const char* const end = p + n; p < end;) {
            if (!*p) {
                ++p;
                continue;
            }
            const char* start = p;
            while (p < end && *p) ++p;
            const string_view word{start, static_cast<size_t>(p - start)};
            if (has_two_characters(word)) token(word);
        }
        end_row();
    }
}

void WordCounter::items(const int64_t* starts, const Strings& words, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
        if (starts[i] < 0 || starts[i + 1] < starts[i] || starts[i + 1] > words.n) {
            throw std::invalid_argument("starts point beyond the items");
        }
        if (starts[i + 1] - starts[i] > kLongest) throw std::length_error("a row is too long");
        for (int64_t j = starts[i]; j < starts[i + 1]; ++j) token(words[j]);
        end_row();
    }
}

// Most words differ in their first eight bytes, which are compared as one number.
void WordCounter::sort() {
    struct Key {
        uint64_t prefix;
        int32_t id;
    };
    std::vector<Key> keys(at(words_.size()));
    for (int32_t id = 0; id < words_.size(); ++id) keys[at(id)] = {prefix(words_.word(id)), id};
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
        return a.prefix != b.prefix ? a.prefix < b.prefix : words_.word(a.id) < words_.word(b.id);
    });
    order_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) order_[i] = keys[i].id;
}

Merged merge(const std::vector<WordCounter*>& counters) {
    Merged merged;
    merged.offsets.push_back(0);
    std::vector<size_t> next(counters.size(), 0);
    const auto head = [&](size_t c) {
        return counters[c]->words_.word(counters[c]->order_[next[c]]);
    };
    for (WordCounter* counter : counters) counter->ranks_.resize(counter->order_.size());
    while (true) {
        size_t least = counters.size();
        for (size_t c = 0; c < counters.size(); ++c) {
            if (next[c] == counters[c]->order_.size()) continue;
            if (least == counters.size() || head(c) < head(least)) least = c;
        }
        if (least == counters.size()) break;
        const string_view word = head(least);
        const size_t rank = merged.offsets.size() - 1;
        if (rank == at(kLongest)) throw std::length_error("more than 2^31 - 1 different words");
        merged.bytes.insert(merged.bytes.end(), word.begin(), word.end());
        merged.offsets.push_back(static_cast<int64_t>(merged.bytes.size()));
        for (size_t c = least; c < counters.size(); ++c) {
            if (next[c] == counters[c]->order_.size() || head(c) != word) continue;
            const int32_t id = counters[c]->order_[next[c]++];
            counters[c]->ranks_[at(id)] = static_cast<int32_t>(rank);
        }
    }
    merged.n_rows.resize(merged.offsets.size() - 1);
    merged.n_times.resize(merged.offsets.size() - 1);
    for (WordCounter* counter : counters) {
        for (const WordCounter::Entry& entry : counter->entries_) {
            const size_t rank = at(counter->ranks_[at(entry.word)]);
            ++merged.n_rows[rank];
            merged.n_times[rank] += entry.count;
        }
        counter->n_merged_ = static_cast<int64_t>(merged.n_rows.size());
    }
    return merged;
}

int64_t WordCounter::n_words() const { return fixed_ ? words_.size() : n_merged_; }

void WordCounter::count_kept(std::span<const int32_t> columns, int64_t* n_kept) const {
    int64_t e = 0;
    for (const int64_t end : ends_) {
        int64_t n = 0;
        for (; e < end; ++e) n += column(entries_[at(e)], columns) >= 0;
        *n_kept++ = n;
    }
}

template <class Index>
void WordCounter::fill(std::span<const int32_t> columns, const Index* indptr, Index* indices,
                       float* data) const {
    std::vector<uint64_t> row;  // column and count as one number, to be sorted together
    int64_t e = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
        row.clear();
        for (; e < ends_[i]; ++e) {
            const int32_t place = column(entries_[at(e)], columns);
            if (place < 0) continue;
            const auto count = static_cast<uint32_t>(entries_[at(e)].count);
            row.push_back(static_cast<uint64_t>(place) << 32 | count);
        }
        std::sort(row.begin(), row.end());
        int64_t out = static_cast<int64_t>(indptr[i]);
        for (const uint64_t entry : row) {
            indices[out] = static_cast<Index>(entry >> 32);
            data[out++] = static_cast<float>(static_cast<uint32_t>(entry));
        }
    }
}
template void WordCounter::fill(std::span<const int32_t>, const int32_t*, int32_t*, float*) const;
template void WordCounter::fill(std::span<const int32_t>, const int64_t*, int64_t*, float*) const;

}  // namespace coem
