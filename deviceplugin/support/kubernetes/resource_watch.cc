#include "deviceplugin/support/kubernetes/resource_watch.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "netns/json/char_iterator.h"

namespace railhead {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using http::Deadline;

// As client-go's: long enough to be rare, and not the same for all nodes.
constexpr std::chrono::seconds kShortestWatch{300};
// A watch whose connection died without a word has no end otherwise.
constexpr std::chrono::seconds kWatchGrace{60};
constexpr std::chrono::seconds kLongestList{120};
// etcd takes no object above 1.5 MiB.
constexpr std::size_t kMostOfEvent = std::size_t{4} << 20;
constexpr std::int64_t kGone = 410;

std::chrono::seconds WatchTime() {
  return kShortestWatch + std::chrono::seconds(std::random_device{}() % kShortestWatch.count());
}

// The bytes of a stream, one after the other, for nlohmann's parser.
struct Body {
  http::HttpStream& stream;
  std::chrono::milliseconds timeout;
  Deadline deadline;
  std::string bytes;
  std::size_t at = 0;
  std::optional<Error> error;
  bool ended = false;

  bool AtEnd() {
    if (at < bytes.size()) return false;
    if (ended) return true;
    auto next = stream.Read(std::min(deadline, Clock::now() + timeout));
    if (!next) error = std::move(next.error());
    ended = !next || !*next;
    if (ended) return true;
    bytes = *std::move(*next);
    at = 0;
    return false;
  }
  [[nodiscard]] const char& Get() const { return bytes[at]; }
  void Next() { ++at; }
};

Error MalformedAnswer(const std::string& path, const std::string& why) {
  return {ErrorCode::kMalformed, "the Kubernetes API's answer about " + path + ": " + why,
          "see that this is the address of the API and not of something else", 0};
}

// An object's own metadata.
struct Metadata {
  std::string name;
  std::string version;
};

Metadata MetadataOf(JsonReader& object) {
  Metadata metadata;
  if (auto reader = object.Object("metadata")) {
    metadata.name = reader->String("name").value_or("");
    metadata.version = reader->String("resourceVersion").value_or("");
  }
  return metadata;
}

// Gives each element of `items` to `objects`, and keeps the rest, which is small. The error is of an element.
class ItemReader {
 public:
  ItemReader(const std::string& path, WatchedObjects& objects) : path_(path), objects_(objects) {}

  // For nlohmann's parser: whether to keep what was just read.
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) in_items_ = parsed == "items";
    if (!in_items_ || depth != 2 || event != Json::parse_event_t::object_end) return true;
    Take(parsed);
    return false;
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void Take(const Json& item) {
    const std::string text = item.dump(-1, ' ', false, Json::error_handler_t::replace);
    auto document = JsonDocument::Parse(text, "an object of " + path_, text.size());
    if (!document) {
      error_ = std::move(document.error());
      return;
    }
    JsonReader object = document->Root();
    const std::string name = MetadataOf(object).name;
    if (name.empty()) {
      error_ = MalformedAnswer(path_, "an object has no name");
      return;
    }
    objects_.Set(name, document->Root());
  }

  const std::string& path_;
  WatchedObjects& objects_;
  bool in_items_ = false;
  std::optional<Error> error_;
};

}  // namespace

ResourceWatch::ResourceWatch(const KubeAccess& access, std::chrono::milliseconds timeout, std::string path,
                             KubeNeeds needs)
    : api_(access, timeout, std::move(needs)),
      timeout_(timeout),
      path_(std::move(path)),
      watch_time_(WatchTime()) {}

void ResourceWatch::Forget() {
  stream_.reset();
  listed_ = false;
}

Result<void> ResourceWatch::Take(std::chrono::milliseconds wait, WatchedObjects& objects) {
  const Deadline until = Clock::now() + wait;
  if (!listed_) RH_TRY_WRAP(List(objects), "listing " + path_);
  if (stream_ && Clock::now() > opened_ + watch_time_ + kWatchGrace) stream_.reset();
  if (!stream_) RH_TRY_WRAP(Open(), "watching " + path_);
  if (!stream_) return {};
  auto taken = WithContext(TakeEvents(until, objects), "watching " + path_);
  if (!taken) stream_.reset();
  return taken;
}

Result<void> ResourceWatch::List(WatchedObjects& objects) {
  auto stream = RH_TRY(api_.Stream(path_ + "?resourceVersion=" + EscapeForQuery(version_)));
  if (!stream) {
    // An etcd that was restored counts its versions anew.
    version_ = "0";
    return Fail(ErrorCode::kUnavailable, "the server does not have the state that was known",
                "the next list takes any state");
  }
  Body body{.stream = *stream, .timeout = timeout_, .deadline = Clock::now() + kLongestList};
  ItemReader items(path_, objects);
  objects.BeginList();
  const Json list = Json::parse(CharIterator(&body), CharIterator<Body>(nullptr), std::ref(items), false);
  if (body.error) return Fail(*std::move(body.error));
  if (items.error()) return Fail(*items.error());
  const auto version = Json::json_pointer("/metadata/resourceVersion");
  if (!list.is_object() || !list.contains(version) || !list.at(version).is_string())
    return Fail(MalformedAnswer(path_, "it is not a list"));
  version_ = list.at(version).get<std::string>();
  listed_ = true;
  objects.EndList();
  return {};
}

Result<void> ResourceWatch::Open() {
  line_.clear();
  opened_ = Clock::now();
  stream_ = RH_TRY(
      api_.Stream(path_ + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + EscapeForQuery(version_) +
                  "&timeoutSeconds=" + std::to_string(watch_time_.count())));
  if (!stream_) Forget();
  return {};
}

Result<void> ResourceWatch::TakeEvents(Deadline until, WatchedObjects& objects) {
  while (stream_) {
    auto bytes = stream_->Read(until);
    if (!bytes && bytes.error().code == ErrorCode::kTimeout) return {};
    if (!bytes) return Fail(std::move(bytes.error()));
    if (!*bytes) {
      stream_.reset();
      return {};
    }
    line_ += **bytes;
    std::size_t begin = 0;
    for (std::size_t end = 0; stream_ && (end = line_.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      RH_TRY(TakeLine(line_.substr(begin, end - begin), objects));
    line_.erase(0, begin);
    if (line_.size() > kMostOfEvent) {
      Forget();
      return Fail(MalformedAnswer(path_, "an event of more than " + std::to_string(kMostOfEvent) + " bytes"));
    }
    until = std::min(until, Clock::now());  // what else has come
  }
  return {};
}

Result<void> ResourceWatch::TakeLine(const std::string& line, WatchedObjects& objects) {
  if (line.empty()) return {};
  const auto document = JsonDocument::Parse(line, "an event of " + path_, line.size());
  std::string type;
  std::optional<JsonReader> object;
  if (document) {
    JsonReader event = document->Root();
    type = event.String("type").value_or("");
    object = event.Object("object");
  }
  if (!object) {
    Forget();
    return Fail(MalformedAnswer(path_, "what should be an event is: " + line.substr(0, 200)));
  }
  if (type == "ERROR") {
    Forget();
    if (object->Int("code", 0, 999) == kGone) return {};
    return Fail(ErrorCode::kUnavailable, object->String("message").value_or("an error without a message"),
                "the objects are listed anew");
  }
  const Metadata metadata = MetadataOf(*object);
  const bool is_bookmark = type == "BOOKMARK";
  if (metadata.version.empty() || (!is_bookmark && metadata.name.empty())) {
    Forget();
    return Fail(MalformedAnswer(path_, "an event's object has no name or version"));
  }
  version_ = metadata.version;
  if (type == "DELETED") {
    objects.Remove(metadata.name);
  } else if (!is_bookmark) {
    objects.Set(metadata.name, *std::move(object));
  }
  return {};
}

}  // namespace railhead
