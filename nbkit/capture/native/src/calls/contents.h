// The contents of the memory that captured calls read and write: which are stored already. As KnownContents and CallWriter in
// Python (nbkit/capture/calls/memory.py, nbkit/trace/calls/writing.py), whose memory it fills with what is new.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>
#include <c10/util/flat_hash_map.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "content_hash.h"
#include "device_bytes.h"
#include "record_text.h"

namespace nbkit {

namespace py = pybind11;

// A storage in the hands of Python for the time of a call: with an object of its own, as tensor.untyped_storage() gives it,
// autograd would no longer add gradients in place.
struct HeldStorage {
  c10::Storage storage;
};

// The Shard of nbkit/trace/calls/shards.py that is being filled, by its memory.
class Filling {
 public:
  Filling() = default;
  explicit Filling(const py::object& shard)
      : block_(py::buffer(shard.attr("block")).request(true)),
        ends_(py::buffer(shard.attr("ends")).request(true)),
        filled_(py::buffer(shard.attr("filled")).request(true)),
        first_(shard.attr("first").cast<int64_t>()) {}

  // The number of a content that has been added; none where it does not fit.
  std::optional<int64_t> add(const char* data, size_t size) {
    if (!is_open() || filled()[1] + static_cast<int64_t>(size) > filled()[2] || filled()[0] == ends_.size) {
      return std::nullopt;
    }
    std::memcpy(memory() + filled()[1], data, size);
    ends()[filled()[0]] = filled()[1] += static_cast<int64_t>(size);
    return first_ + filled()[0]++;
  }

  // The bytes of a content; null of one that lies elsewhere.
  const char* find(int64_t number) const {
    if (!is_open() || number < first_) {
      return nullptr;
    }
    return memory() + (number == first_ ? 0 : ends()[number - first_ - 1]);
  }

 private:
  // Python closes it when it is to be written: its memory is filled again then.
  bool is_open() const { return filled_.ptr != nullptr && filled()[2] > 0; }
  char* memory() const { return static_cast<char*>(block_.ptr); }
  int64_t* ends() const { return static_cast<int64_t*>(ends_.ptr); }
  int64_t* filled() const { return static_cast<int64_t*>(filled_.ptr); }

  py::buffer_info block_, ends_, filled_;
  int64_t first_ = 0;
};

// The name of a content: its number; of what is referenced, as many below 0 as such names came before, less one.
using Name = int64_t;

class Contents {
 public:
  // `writer` is a CallWriter. `reference` names what need not be stored, by the number of a storage's address; None where
  // all is. `copies` reads the memory of the CPU as that of a device.
  Contents(const py::object& writer, py::object reference, bool copies)
      : store_(writer.attr("store")),
        stored_(writer.attr("stored")),
        shards_(writer.attr("shards")),
        encode_(py::module_::import("json").attr("dumps")),
        reference_(std::move(reference)),
        copies_(copies) {}

  // The name of bytes, which are stored unless they are.
  Name put(const char* data, size_t size) { return put(data, size, hash_of(data, size)); }

  Name put(const py::buffer& buffer) {
    const py::buffer_info info = buffer.request();
    return put(static_cast<const char*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
  }

  // A name as Python has it.
  std::string text_of(Name name) const { return name < 0 ? *text(name).first : std::to_string(name); }

  // Adds a name as JSON.
  void append_to(std::string& record, Name name) const {
    if (name < 0) {
      record += text(name).second;
    } else {
      append_number(record, "\"", name);
      record += '"';
    }
  }

  // The name of the state of a generator.
  Name put_state(at::Generator generator) {
    const at::Tensor state = [&] {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      return generator.get_state();
    }();
    return put(static_cast<const char*>(state.const_data_ptr()), state.nbytes());
  }

  // The name of what a storage holds now.
  Name name(const c10::Storage& storage, Part part) {
    const std::optional<Named> known = part.count > tiny ? find(storage, part) : std::nullopt;
    if (is_read_in_place(storage)) {
      const char* data = static_cast<const char*>(storage.data()) + part.start;
      const int64_t hash = hash_of(data, static_cast<size_t>(part.count));
      return known && known->hash == hash ? known->name : named(storage, part, data, hash, [&] { return hash; });
    }
    const DeviceBytes bytes(storage, part);
    if (known && known->hash == bytes.hash()) {  // it need not come from the device
      return known->name;
    }
    const at::Tensor copy = bytes.copy();
    const char* data = static_cast<const char*>(copy.const_data_ptr());
    const int64_t hash = hash_of(data, static_cast<size_t>(part.count));
    return named(storage, part, data, hash, [&] { return DeviceBytes::hash(copy); });
  }

  // Whether the whole content is stored, as it is now.
  bool is_whole_known(const c10::Storage& storage) {
    const Part whole{0, static_cast<int64_t>(storage.nbytes())};
    const std::optional<Named> known = find(storage, whole);
    return known && known->hash == (is_read_in_place(storage)
                                        ? hash_of(static_cast<const char*>(storage.data()), storage.nbytes())
                                        : DeviceBytes(storage, whole).hash());
  }

  // Notes that an op writes to a storage.
  void changed(const c10::Storage& storage) { known_.erase(storage.unsafeGetStorageImpl()); }

  size_t count() const { return known_.size(); }

 private:
  static constexpr int64_t tiny = 4096;
  struct Named {
    Name name;
    int64_t hash;  // of the bytes, or that of DeviceBytes
  };
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::map<Part, Named> parts;
  };

  bool is_read_in_place(const c10::Storage& storage) const { return storage.device().is_cpu() && !copies_; }

  // What is known of a part.
  std::optional<Named> find(const c10::Storage& storage, Part part) {
    const auto& parts = entry(storage).parts;
    const auto found = parts.find(part);
    return found == parts.end() ? std::nullopt : std::optional(found->second);
  }

  // The name of the bytes `data` of a part, which is known by `known_hash()` from now on.
  template <typename Hash>
  Name named(const c10::Storage& storage, Part part, const char* data, int64_t hash, Hash known_hash) {
    const auto size = static_cast<size_t>(part.count);
    const std::optional<Name> referenced = reference(storage, data, size);
    const Name name = referenced.has_value() ? *referenced : put(data, size, hash);
    if (part.count > tiny) {  // to store less anew, and to compare it, takes no longer than to look it up
      entry(storage).parts[part] = {name, known_hash()};
    }
    return name;
  }

  Name put(const char* data, size_t size, int64_t hash) {
    const auto alike = by_hash_[hash];  // a copy: Python, which shows what is written, may let other threads run
    for (const auto& [other_size, number] : alike) {
      if (other_size == size && is_same(number, data, size)) {
        return number;
      }
    }
    const auto added = filling_.add(data, size);
    const Name number = added.has_value() ? *added : stored(data, size);
    by_hash_[hash].emplace_back(size, number);
    return number;
  }

  // The number that Python gives a content which does not fit in what is being filled.
  Name stored(const char* data, size_t size) {
    const auto number = store_(py::memoryview::from_memory(data, static_cast<py::ssize_t>(size))).cast<int64_t>();
    const py::object shard = shards_.attr("filling");
    filling_ = shard.is_none() ? Filling() : Filling(shard);
    return number;
  }

  bool is_same(int64_t number, const char* data, size_t size) const {
    const char* known = filling_.find(number);
    return std::memcmp(known != nullptr ? known : py::buffer(stored_(number)).request().ptr, data, size) == 0;
  }

  std::optional<Name> reference(const c10::Storage& storage, const char* data, size_t size) {
    if (reference_.is_none()) {
      return std::nullopt;
    }
    auto name = reference_(reinterpret_cast<uintptr_t>(storage.data()), storage.nbytes(),
                           py::memoryview::from_memory(data, static_cast<py::ssize_t>(size)))
                    .cast<std::optional<std::string>>();
    if (!name.has_value()) {
      return std::nullopt;
    }
    const auto found = referenced_.find(*name);
    if (found != referenced_.end()) {
      return found->second;
    }
    auto encoded = encode_(*name).cast<std::string>();  // Python may let another thread come here meanwhile
    const auto [known, is_new] = referenced_.try_emplace(std::move(*name), -1 - static_cast<Name>(referenced_.size()));
    if (is_new) {
      texts_.emplace_back(&known->first, std::move(encoded));
    }
    return known->second;
  }

  const std::pair<const std::string*, std::string>& text(Name name) const { return texts_[static_cast<size_t>(-1 - name)]; }

  Known& entry(const c10::Storage& storage) {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    auto found = known_.find(impl);
    // The address of a storage cannot come back while a weak reference to it is held.
    if (found == known_.end()) {
      if (known_.size() >= most_) {
        for (auto one = known_.begin(); one != known_.end();) {
          one = one->second.storage.expired() ? known_.erase(one) : std::next(one);
        }
        most_ = 2 * known_.size() + 1000;
      }
      found = known_.emplace(impl, Known{storage.getWeakStorageImpl(), {}}).first;
    }
    return found->second;
  }

  py::object store_, stored_, shards_, encode_, reference_;
  const bool copies_;
  Filling filling_;
  ska::flat_hash_map<c10::StorageImpl*, Known> known_;
  ska::flat_hash_map<int64_t, c10::SmallVector<std::pair<size_t, Name>, 1>> by_hash_;  // sizes and numbers of contents
  std::unordered_map<std::string, Name> referenced_;
  std::vector<std::pair<const std::string*, std::string>> texts_;  // of names below 0, and these as JSON
  size_t most_ = 1000;
};

}  // namespace nbkit
