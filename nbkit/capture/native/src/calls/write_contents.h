// A safetensors file of contents, made without Python's lock: as write_contents() of nbkit/trace/calls/shards.py, while the
// step or what follows it goes on in Python.
#pragma once

#include <caffe2/serialize/crc_alt.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace nbkit {

namespace py = pybind11;

// CRC32 in hexadecimal.
inline std::string checksum_of(const char* data, size_t size) {
  char checksum[9];
  std::snprintf(checksum, sizeof(checksum), "%08x", static_cast<unsigned>(crc32_fast(data, size)));
  return checksum;
}

// What the file begins with: the name and the place of each content; `ends` are where they end.
inline std::string head_of(const char* data, size_t first, const std::vector<size_t>& ends) {
  std::string head = "{";
  size_t start = 0;
  for (const size_t end : ends) {
    head += (head.size() == 1 ? "\"" : ",\"") + std::to_string(first++) + "-" + checksum_of(data + start, end - start) +
            R"(":{"dtype":"U8","shape":[)" + std::to_string(end - start) + R"(],"data_offsets":[)" + std::to_string(start) +
            "," + std::to_string(end) + "]}";
    start = end;
  }
  head += "}";
  std::string size;
  for (int byte = 0; byte < 8; ++byte) {
    size += static_cast<char>(static_cast<uint64_t>(head.size()) >> 8 * byte);
  }
  return size + head;
}

// Writes a file; returns errno, 0 if it is whole.
inline int write_file(const std::filesystem::path& path, const std::string& head, const char* data, size_t size) {
  std::FILE* file = std::fopen(path.string().c_str(), "wb");
  if (file == nullptr) {
    return errno;
  }
  std::setvbuf(file, nullptr, _IONBF, 0);
  errno = 0;
  const bool is_whole =
      std::fwrite(head.data(), 1, head.size(), file) == head.size() && std::fwrite(data, 1, size, file) == size;
  const int error = is_whole ? 0 : (errno != 0 ? errno : EIO);
  return std::fclose(file) != 0 && is_whole ? errno : error;
}

// Returns the length of what the file begins with. Raises OSError, and leaves nothing half-written.
inline size_t write_contents(const py::object& name, size_t first, const py::buffer& block,
                             const std::vector<size_t>& ends) {
  const std::filesystem::path path(py::module_::import("os").attr("fsencode")(name).cast<std::string>());
  const py::buffer_info info = block.request();
  const char* data = static_cast<const char*>(info.ptr);
  std::string head;
  int error = 0;
  {
    const py::gil_scoped_release others_run;
    head = head_of(data, first, ends);
    auto partial = path;
    partial.replace_extension(".part");
    std::error_code trouble;
    error = write_file(partial, head, data, ends.empty() ? 0 : ends.back());
    if (error == 0) {
      std::filesystem::rename(partial, path, trouble);
      error = trouble.value();
    }
    if (error != 0) {
      std::filesystem::remove(partial, trouble);
    }
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name.ptr());
    throw py::error_already_set();
  }
  return head.size();
}

}  // namespace nbkit
