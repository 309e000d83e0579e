// The files of a folder of captured calls, written in a thread that never takes Python's lock, while the step and what follows
// it go on in Python. As PythonFileWriter of nbkit/trace/calls/file_writer.py.
#pragma once

#include <caffe2/serialize/crc_alt.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
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

// Appends to a file, or writes one anew: one text after the other. Returns errno, 0 if all is written.
inline int write_file(const std::filesystem::path& path, const char* mode, const std::string& text, const char* data,
                      size_t size) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (file == nullptr) {
    return errno;
  }
  std::setvbuf(file, nullptr, _IONBF, 0);
  errno = 0;
  const bool is_whole =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fwrite(data, 1, size, file) == size;
  const int error = is_whole ? 0 : (errno != 0 ? errno : EIO);
  return std::fclose(file) != 0 && is_whole ? errno : error;
}

// A file of contents, if `path` is not empty, and then the lines of the calls that name them.
struct WriteTask {
  std::filesystem::path path, calls_path;
  size_t first = 0;
  const char* data = nullptr;
  std::vector<size_t> ends;
  std::string lines;
  size_t head_bytes = 0;  // of the file of contents
  int error = 0;
  std::filesystem::path failed;
  bool is_done = false;

  void run() {
    if (!path.empty()) {
      failed = path;
      error = write_contents();
    }
    if (error == 0 && !lines.empty()) {
      failed = calls_path;
      error = write_file(calls_path, "ab", lines, nullptr, 0);
    }
  }

 private:
  // Leaves nothing half-written.
  int write_contents() {
    const std::string head = head_of(data, first, ends);
    auto partial = path;
    partial.replace_extension(".part");
    std::error_code trouble;
    int failure = write_file(partial, "wb", head, data, ends.empty() ? 0 : ends.back());
    if (failure == 0) {
      std::filesystem::rename(partial, path, trouble);
      failure = trouble.value();
    }
    if (failure != 0) {
      std::filesystem::remove(partial, trouble);
    }
    head_bytes = head.size();
    return failure;
  }
};

// What the thread and Python share.
struct WriteQueue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<WriteTask>> waiting;
  std::shared_ptr<WriteTask> failed;  // nothing is written any more after it: that could name what is not there
  size_t unfinished = 0;
  bool is_closed = false, is_running = false;  // whether the thread is to end, and has not
  const pid_t process = ::getpid();

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_closed || !waiting.empty(); });
      if (waiting.empty()) {
        is_running = false;
        return;
      }
      const std::shared_ptr<WriteTask> task = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      if (failed != nullptr) {
        task->error = failed->error;
        task->failed = failed->failed;
      } else {
        task->run();
      }
      lock.lock();
      failed = task->error != 0 ? task : nullptr;
      task->is_done = true;
      --unfinished;
      changed.notify_all();
    }
  }
};

// A task in the hands of Python, which keeps the memory that is written.
class WriteJob {
 public:
  WriteJob(std::shared_ptr<WriteQueue> queue, std::shared_ptr<WriteTask> task, py::buffer_info block)
      : queue_(std::move(queue)), task_(std::move(task)), block_(std::move(block)) {}
  WriteJob(WriteJob&&) = default;
  WriteJob& operator=(WriteJob&&) = delete;
  ~WriteJob() { wait(); }

  bool is_done() const {
    const std::lock_guard<std::mutex> lock(queue_->mutex);
    return task_->is_done;
  }

  // Waits for it; returns the length of what the file of contents begins with. Raises OSError.
  size_t result() const {
    wait();
    if (task_->error != 0) {
      errno = task_->error;
      PyErr_SetFromErrnoWithFilename(PyExc_OSError, task_->failed.c_str());
      throw py::error_already_set();
    }
    return task_->head_bytes;
  }

 private:
  void wait() const {
    if (queue_ == nullptr || queue_->process != ::getpid()) {  // moved from, or forked: the thread is elsewhere
      return;
    }
    const py::gil_scoped_release others_run;
    std::unique_lock<std::mutex> lock(queue_->mutex);
    queue_->changed.wait(lock, [this] { return task_->is_done; });
  }

  std::shared_ptr<WriteQueue> queue_;
  std::shared_ptr<WriteTask> task_;
  py::buffer_info block_;
};

class FileWriter {
 public:
  FileWriter() = default;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() { shutdown(); }

  // `contents`, if there are any: path, number of the first, block, where each ends.
  WriteJob submit(const py::object& contents, const py::object& calls_path, const std::vector<std::string>& lines) {
    auto task = std::make_shared<WriteTask>();
    py::buffer_info block;
    if (!contents.is_none()) {
      auto [path, first, buffer, ends] =
          contents.cast<std::tuple<py::object, size_t, py::buffer, std::vector<size_t>>>();
      block = buffer.request();
      task->path = path_of(path);
      task->first = first;
      task->data = static_cast<const char*>(block.ptr);
      task->ends = std::move(ends);
    }
    task->calls_path = path_of(calls_path);
    for (const std::string& line : lines) {
      task->lines += line;
    }
    if (is_added(task)) {
      std::thread([queue = queue_] { queue->run(); }).detach();
    }
    return {queue_, std::move(task), std::move(block)};
  }

  // Waits until all is written; the thread ends by itself then, which would take longer.
  void shutdown() {
    if (queue_->process != ::getpid()) {
      return;
    }
    const py::gil_scoped_release others_run;
    std::unique_lock<std::mutex> lock(queue_->mutex);
    queue_->changed.wait(lock, [this] { return queue_->unfinished == 0; });
    queue_->is_closed = true;
    queue_->changed.notify_all();
  }

 private:
  // Returns whether there is no thread that will run the task.
  bool is_added(const std::shared_ptr<WriteTask>& task) {
    const std::lock_guard<std::mutex> lock(queue_->mutex);
    queue_->waiting.push_back(task);
    ++queue_->unfinished;
    queue_->is_closed = false;
    queue_->changed.notify_all();
    return !std::exchange(queue_->is_running, true);
  }

  static std::filesystem::path path_of(const py::object& path) {
    return py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  }

  std::shared_ptr<WriteQueue> queue_ = std::make_shared<WriteQueue>();
};

}  // namespace nbkit
