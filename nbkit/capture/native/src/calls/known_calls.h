// What is known of an op's calls: the text of their records, by what these follow from.
#pragma once

#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../tensors.h"
#include "contents.h"

namespace nbkit {

// The part of a storage whose content a record names; the storage by its number in the call.
using NamedPart = std::pair<size_t, Part>;
using NamedParts = std::vector<NamedPart>;

// The text of a record without what differs from call to call: its number, and the names of contents.
class RecordText {
 public:
  // `between` says what stands between two texts: the place of a name, -1 for the number.
  RecordText(const std::vector<std::string>& texts, const std::vector<int64_t>& between, NamedParts after)
      : after(std::move(after)) {
    for (size_t place = 0; place < texts.size(); ++place) {
      text_ += texts[place];
      if (place < between.size()) {
        gaps_.emplace_back(text_.size(), between[place]);
      }
    }
  }

  NamedParts after;

  // Adds the text of a call's record to `text`; `add_name` adds the JSON of a name.
  template <typename AddName>
  void append_to(std::string& text, int64_t number, c10::ArrayRef<Name> names, const AddName& add_name) const {
    size_t start = 0;
    for (const auto& [end, place] : gaps_) {
      text.append(text_, start, end - start);
      if (place < 0) {
        text += std::to_string(number);
      } else {
        add_name(names[static_cast<size_t>(place)]);
      }
      start = end;
    }
    text.append(text_, start);
  }

 private:
  std::string text_;
  std::vector<std::pair<size_t, int64_t>> gaps_;  // where one is, and what fills it
};

// What is known of calls that begin alike.
struct KnownCalls {
  bool draws = false;  // from the default generator of the CPU, whose state is named first, as those of others are
  NamedParts before;
  py::object spans;  // of the storages of its inputs, for Python
  std::unordered_map<Key, RecordText, KeyHash> by_end;
};

// What is the same at every call of an op; from ObservedCalls.describe() in Python.
struct CaptureTraits {
  bool is_uninitialised;
  bool is_usual;          // its record follows from arguments, what is set, and values
  bool takes_whole;       // storages are told by their whole size: what it does follows from shapes alone
  std::vector<size_t> written;  // arguments it writes to
  py::object name;
  std::unordered_map<Key, KnownCalls, KeyHash> known;

  // Keeps the record of a call, which Python has made of it, for those with the same keys; `calls` is what is known of
  // those that begin alike, null if nothing is.
  void learn(KnownCalls* calls, const Key& begun, Key ended, const py::object& learned) {
    using Parts = std::vector<std::tuple<size_t, int64_t, int64_t>>;
    auto [draws, before, spans, after, texts, between] =
        learned.cast<std::tuple<bool, Parts, py::object, Parts, std::vector<std::string>, std::vector<int64_t>>>();
    if (calls == nullptr && known.size() < most_known) {
      calls = &known[begun];
      calls->draws = draws;
      calls->before = parts_of(before);
      calls->spans = spans;
    }
    // Names have their places in the text by what is named before.
    if (calls != nullptr && calls->by_end.size() < most_known && calls->before.size() == before.size()) {
      calls->by_end.insert_or_assign(std::move(ended), RecordText(texts, between, parts_of(after)));
    }
  }

 private:
  static constexpr size_t most_known = 500;  // numbers that differ from call to call make a kind each

  static NamedParts parts_of(const std::vector<std::tuple<size_t, int64_t, int64_t>>& parts) {
    NamedParts found;
    for (const auto& [storage, start, count] : parts) {
      found.push_back({storage, {start, count}});
    }
    return found;
  }
};

}  // namespace nbkit
