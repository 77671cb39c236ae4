// The client library's objects, owned; its errors as text.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

namespace fast::stream {

template <auto destroy>
struct Destroys {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};

using OptionsHandle = std::unique_ptr<natsOptions, Destroys<natsOptions_Destroy>>;
using ContextHandle = std::unique_ptr<jsCtx, Destroys<jsCtx_Destroy>>;
using SubscriptionHandle = std::unique_ptr<natsSubscription, Destroys<natsSubscription_Destroy>>;
using MessageHandle = std::unique_ptr<natsMsg, Destroys<natsMsg_Destroy>>;
using NamesHandle = std::unique_ptr<jsStreamNamesList, Destroys<jsStreamNamesList_Destroy>>;
using StreamInfoHandle = std::unique_ptr<jsStreamInfo, Destroys<jsStreamInfo_Destroy>>;
using ConsumerInfoHandle = std::unique_ptr<jsConsumerInfo, Destroys<jsConsumerInfo_Destroy>>;

/// Of the call that this thread made last.
inline std::string text_of(natsStatus status) {
  natsStatus last = NATS_OK;
  const char* detail = nats_GetLastError(&last);
  if (last == status && detail != nullptr && *detail != '\0') return detail;
  return natsStatus_GetText(status);
}

}  // namespace fast::stream
