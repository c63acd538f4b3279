// group_fixture.h: a pair whose receives may be grouped, eight members at the most.
//
// Threads: as gtest. Errors: each helper fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {

struct Member {
  int tag;
  size_t capacity;
};

struct Group {
  void* request = nullptr;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<int> sizes;
};

class GroupTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment = {{"TCPX_MAX_RECVS", "8"}};
    return settings;
  }

  void SetUp() override {
    RulesTest::SetUp();
    if (plugin_ != nullptr) MakePair(&pair_);
  }

  ncclResult_t TryReceive(const std::vector<Member>& members, Group* group, void* on_entry = nullptr) {
    std::vector<void*> data;
    std::vector<size_t> capacities;
    std::vector<int> tags;
    group->buffers.clear();
    for (const Member& member : members) {
      group->buffers.push_back(std::make_unique<GuardedBuffer>(member.capacity));
      data.push_back(group->buffers.back()->data());
      capacities.push_back(member.capacity);
      tags.push_back(member.tag);
    }
    group->sizes.assign(members.size(), 0);  // As NCCL does.
    group->request = on_entry;
    return net().Irecv(pair_.receive, static_cast<int>(members.size()), data.data(), capacities.data(), tags.data(),
                       nullptr, nullptr, &group->request);
  }

  Group Receive(const std::vector<Member>& members, void* on_entry = nullptr) {
    Group group;
    // Where lanes heal, housekeeping may be at the connection just now.
    const Deadline deadline;
    do {
      EXPECT_EQ(ncclSuccess, TryReceive(members, &group, on_entry)) << LogText();
    } while (group.request == nullptr && deadline.Yield());
    return group;
  }

  // Null where the plugin can't post now.
  void* TrySend(int tag, const char* data, size_t bytes) {
    void* request = nullptr;
    EXPECT_EQ(ncclSuccess, net().Isend(pair_.send, const_cast<char*>(data), bytes, tag, nullptr, nullptr, &request))
        << LogText();
    return request;
  }

  void* Send(int tag, const char* data, size_t bytes) {
    auto request = PostSend(&net(), pair_.send, data, bytes, tag);
    EXPECT_TRUE(request.ok()) << "tag " << tag << ": " << request.status();
    return request.ok() ? *request : nullptr;
  }

  // The tag is not open, however often it is asked for.
  void ExpectClosed(int tag) {
    for (int i = 0; i < 200; ++i) ASSERT_EQ(nullptr, TrySend(tag, "?", 1)) << "tag " << tag;
  }

  bool Done(void* request, int* sizes = nullptr) {
    int done = 0;
    EXPECT_EQ(ncclSuccess, net().Test(request, &done, sizes)) << LogText();
    return done != 0;
  }

  // Tests until it is done, or the time is over; what has no data stays so however often it is tested.
  bool DoneInTime(Group* group) {
    const Deadline deadline;
    while (!Done(group->request, group->sizes.data())) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  // Drives both ends until all are done.
  void Finish(std::vector<void*> sends, std::vector<Group*> groups) {
    Deadline deadline;
    while (!(sends.empty() && groups.empty()) && !HasFailure()) {
      if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
      if (!groups.empty() && Done(groups.front()->request, groups.front()->sizes.data())) groups.erase(groups.begin());
      ASSERT_TRUE(deadline.Yield()) << sends.size() << " sends, " << groups.size() << " groups\n" << LogText();
    }
  }

  // Member `index` of `group` holds the text, and nothing else was written.
  static void ExpectText(const Group& group, size_t index, const std::string& text) {
    const GuardedBuffer& buffer = *group.buffers[index];
    EXPECT_EQ(text.size(), static_cast<size_t>(group.sizes[index])) << "member " << index;
    EXPECT_EQ(text, std::string(buffer.data(), text.size())) << "member " << index;
    EXPECT_EQ("", buffer.Check(text.size(), buffer.bytes_max())) << "member " << index;
  }
};

}  // namespace tcpx
