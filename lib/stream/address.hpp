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
};

/// Throws Error(argument), naming `option`, when the text is not of that form.
Address read_address(std::string_view text, std::string_view option);

/// Parts of one character or more with dots between them, without spaces. "*" stands for one part,
/// ">" at the end for one or more; both only where `wildcards` allows it.
bool is_subject(std::string_view text, bool wildcards);

/// Whether a message of the subject `subject` is among those of `filter`, which may have wildcards.
bool subject_matches(std::string_view filter, std::string_view subject);

}  // namespace fast::stream
