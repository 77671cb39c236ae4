// Where a stream is: the URL of a NATS server, and subjects of its messages.
#pragma once

#include <string>
#include <string_view>

namespace fast::stream {

/// nats://[USER[:PASSWORD]@]HOST[:PORT][/SUBJECT]
struct Address {
  std::string url;      ///< for the client: without the subject, with user and password
  std::string shown;    ///< for messages: without user and password
  std::string subject;  ///< empty: none is given
  /// Of the file FAST_NATS_PASSWORD_FILE; the URL has no user then. A secret without a user is a
  /// token. Empty: all that there is stands in the URL.
  std::string user{}, secret{};
};

/// Reads the file FAST_NATS_PASSWORD_FILE, if this variable is set and the text has no password.
/// Throws Error(argument), naming `option`, when the text is not of that form, and naming the
/// variable when the file has no first line.
Address read_address(std::string_view text, std::string_view option);

/// Parts of one character or more with dots between them, without spaces. "*" stands for one part,
/// ">" at the end for one or more; both only where `wildcards` allows it.
bool is_subject(std::string_view text, bool wildcards);

/// Whether a message of the subject `subject` is among those of `filter`, which may have wildcards.
bool subject_matches(std::string_view filter, std::string_view subject);

}  // namespace fast::stream
