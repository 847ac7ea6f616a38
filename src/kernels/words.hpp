// Words of documents and how often each is there, with n-grams, stop words and fixed vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace coem {

// Strings as Arrow keeps them: string i is data[offsets[i], offsets[i + 1]).
struct Strings {
    const std::int64_t* offsets;
    std::int64_t n;
    const char* data;
    std::int64_t n_bytes;

    std::string_view operator[](std::int64_t i) const;  // throws if it lies outside the data
};

// A word as the table looks for it. Up to 16 bytes, `head`, `tail` and the length say all of it.
struct Key {
    std::string_view word;
    std::uint64_t head, tail, hash;
};

// Hashes words with secret numbers. Whoever writes a text does not know them, and so cannot choose
// words that all want the same slots, which would make a table as slow as a list. Nothing that is
// counted depends on them: words are numbered as they come, and sorted in the end.
class Hasher {
  public:
    explicit Hasher(std::uint64_t seed);
    Key operator()(std::string_view word) const;

  private:
    std::uint64_t secret_[4];
};

// The seed of this process: a random number, drawn once.
std::uint64_t random_seed();

// The set of all words so far, numbered as they came. A slot is half a cache line and has all that
// counting asks for, so that a word costs one wait for memory, which `prefetch` can begin early.
class WordTable {
  public:
    struct Slot {
        std::uint64_t head, tail;
        std::uint32_t length;
        std::int32_t id = -1;  // of a free slot
        // For who counts: the last row that had the word, and its entry there.
        std::int32_t row = -1;
        std::uint32_t place;
    };

    explicit WordTable(const Hasher& hasher);
    void prefetch(const Key& key) const { __builtin_prefetch(&slots_[key.hash & mask()]); }
    Slot& find(const Key& key) { return slots_[place(key)]; }  // a free one if it is not there
    Slot& add(const Key& key);
    std::string_view word(std::int32_t id) const {
        const std::size_t* start = &starts_[static_cast<std::size_t>(id)];
        return {bytes_.data() + start[0], start[1] - start[0]};
    }
    std::int32_t size() const { return static_cast<std::int32_t>(starts_.size() - 1); }
    std::int64_t n_probes() const;  // slots to look at in order to find each word once

  private:
    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t place(const Key& key) const;
    void grow();

    Hasher hasher_;
    std::vector<Slot> slots_;
    std::vector<std::size_t> starts_;
    std::vector<char> bytes_;
};

// Counts the words of rows, one after the other. One thread has one counter; `merge` makes one
// vocabulary of several, in the order of code points, which does not depend on who had which rows.
class WordCounter {
  public:
    WordCounter(std::int64_t min_n, std::int64_t max_n, std::uint64_t seed);

    void stop(const Strings& words);  // words to pass over, before n-grams are made
    void know(const Strings& words);  // count these alone, each in the column of its place

    // `rule` has for each code point what it becomes inside a word, or -1 if it is in none.
    void text(const Strings& rows, const std::uint8_t* valid, std::span<const std::int32_t> rule,
              std::int64_t lo, std::int64_t hi);
    // The words of row i are words[starts[i]] to words[starts[i + 1] - 1], as they are.
    void items(const std::int64_t* starts, const Strings& words, std::int64_t lo, std::int64_t hi);

    std::int64_t n_rows() const { return static_cast<std::int64_t>(ends_.size()); }
    std::int64_t n_words() const;  // one more than the highest place of a word in the vocabulary
    std::int64_t n_probes() const { return words_.n_probes(); }  // for tests
    void sort();  // before `merge`

    // Entries of each row that have a column; a column of -1 is none.
    void count_kept(std::span<const std::int32_t> columns, std::int64_t* n_kept) const;
    // `indptr` has the beginnings of the rows of this counter in `indices` and `data`.
    template <class Index>
    void fill(std::span<const std::int32_t> columns, const Index* indptr, Index* indices,
              float* data) const;

  private:
    friend struct Merged merge(const std::vector<WordCounter*>& counters);

    struct Entry {
        std::int32_t word;
        std::int32_t count;
    };
    struct Span {
        std::size_t start, end;
    };

    std::size_t lower(std::string_view row, std::span<const std::int32_t> rule);
    void token(std::string_view word);
    void count(std::string_view word);
    void flush();
    void end_row();
    std::int32_t column(const Entry& entry, std::span<const std::int32_t> columns) const {
        const std::int32_t word = ranks_.empty() ? entry.word
                                                 : ranks_[static_cast<std::size_t>(entry.word)];
        return columns[static_cast<std::size_t>(word)];
    }

    std::int64_t min_n_, max_n_;
    bool fixed_ = false, simple_ = true;
    Hasher hasher_;
    WordTable stop_, words_;
    std::vector<Entry> entries_;
    std::vector<std::int64_t> ends_;           // of the rows in `entries_`
    std::vector<std::int32_t> order_, ranks_;  // ids by word; the place of an id in the vocabulary
    std::int64_t n_merged_ = 0;                // words of the vocabulary
    std::vector<char> lowered_, joined_;       // of one row
    std::vector<Span> tokens_;                 // of one row, in `joined_`
    std::array<Key, 64> waiting_;              // words whose slots are on their way
    std::size_t n_waiting_ = 0;
};

// The words of all counters, sorted, with the rows that have them and how often they are there.
struct Merged {
    std::vector<std::int64_t> offsets;
    std::vector<char> bytes;
    std::vector<std::int64_t> n_rows, n_times;
};
Merged merge(const std::vector<WordCounter*>& counters);

}  // namespace coem
