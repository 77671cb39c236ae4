// Where sites' messages go: subjects of a message system, without a memory. Messages may be lost,
// and may come late.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/sites/site.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace fast::sites {

class Bus {
 public:
  /// Is called by threads of the bus, for one subject by one at a time.
  using Handler = std::function<void(std::string_view subject, std::string_view text)>;

  virtual ~Bus() = default;
  /// Does not wait for anybody. False: there is no connection, and the message is lost.
  virtual bool send(const std::string& subject, const std::string& text) = 0;
  /// Asks whether anybody listens to `subject`, by a message without text. If nobody does, one
  /// without text comes to `reply`, to which this bus listens.
  virtual void probe(const std::string& subject, const std::string& reply) = 0;
  /// `subject` may have the wildcard "*".
  virtual void listen(const std::string& subject, Handler handler) = 0;
  /// Throws Error(resource) when the server will not take this program back, or takes messages of
  /// too few bytes only.
  virtual void require_usable() const = 0;
  /// When it returns, handlers do not run any more.
  virtual void end() = 0;
  /// The run's name: the first part of all subjects.
  virtual const std::string& run() const = 0;
};

/// Who connects, and to which servers.
struct BusOptions {
  std::string name;  ///< of a site, or of an onlooker
  std::string url;
  std::string url_option;  ///< what errors call the url
  std::string credentials_file{}, ca_file{};
  /// Of a message that is sent. The server must take so many.
  std::size_t most_bytes = 0;
};

/// To a NATS server. Throws Error(argument) for an address that names no run, and Error(resource)
/// when the server cannot be reached, or takes messages of too few bytes only.
std::unique_ptr<Bus> connect_bus(const BusOptions& options, const LogSink& log);
/// Of a site.
std::unique_ptr<Bus> connect_bus(const SiteOptions& options, const LogSink& log);

}  // namespace fast::sites
