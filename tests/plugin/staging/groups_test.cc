// Groups of staged receives, byte for byte: members in GPU and in host memory mixed at random, from either kind, every
// size at offsets of no alignment, several groups open at once and senders that know nothing of each other's order.
#include <algorithm>
#include <deque>

#include "tests/plugin/staging/staging_fixture.h"
#include "tests/support/pattern.h"

namespace tcpx {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kMembersMax = 8;
constexpr size_t kBehind = 64;  // bytes after each receive that nobody may write

struct Member {
  uint64_t number = 0;  // names its bytes
  size_t bytes = 0;
  size_t capacity = 0;
  int tag = 0;
  bool from_gpu = false, to_gpu = false;
  size_t from_offset = 0, to_offset = 0;
  std::unique_ptr<Buffer> from, to;
  void *from_handle = nullptr, *to_handle = nullptr, *send = nullptr;
};

struct Group {
  std::vector<Member*> members;
  void* receive = nullptr;
};

class GroupsTest : public StagingTest {
 protected:
  // Each of `sizes` with each of the four variants, cut into groups. Tags differ within a group.
  void Plan(const std::vector<size_t>& sizes) {
    for (size_t bytes : sizes) {
      for (int kinds = 0; kinds < 4; ++kinds) {
        Member member;
        member.bytes = bytes;
        member.from_gpu = (kinds & 1) != 0;
        member.to_gpu = (kinds & 2) != 0;
        members_.push_back(std::move(member));
      }
    }
    for (size_t i = members_.size(); i > 1; --i) std::swap(members_[i - 1], members_[rng_.Between(0, i - 1)]);
    pattern_ = std::make_unique<Pattern>(TestSeed(), *std::max_element(sizes.begin(), sizes.end()));
    size_t left = 0;
    uint64_t number = 0;
    for (Member& member : members_) {
      if (left == 0) {
        groups_.emplace_back();
        left = rng_.Between(1, kMembersMax);
      }
      member.number = number++;
      member.tag = static_cast<int>(groups_.back().members.size());
      groups_.back().members.push_back(&member);
      --left;
      Prepare(&member);
    }
    for (Group& group : groups_) {
      const size_t turn = rng_.Between(0, kMembersMax - 1);
      for (Member* member : group.members) {
        member->tag = static_cast<int>((static_cast<size_t>(member->tag) + turn) % kMembersMax);
        unsent_[member->tag].push_back(member);
      }
    }
  }

  void Prepare(Member* member) {
    member->capacity = member->bytes + (rng_.OneIn(2) ? 0 : rng_.Between(1, 300));
    member->from_offset = rng_.Between(0, 300);
    member->to_offset = rng_.Between(0, 300);
    member->from = std::make_unique<Buffer>(lab_.get(), member->from_gpu, member->from_offset + member->bytes + 1);
    member->to = std::make_unique<Buffer>(lab_.get(), member->to_gpu, member->to_offset + member->capacity + kBehind);
    member->from->Write(member->from_offset, pattern_->Bytes(member->number), member->bytes);
    member->from_handle = Register(pair_.send, member->from.get());
    member->to_handle = Register(pair_.receive, member->to.get());
  }

  // True when the next group was posted.
  bool Post() {
    constexpr size_t kOpenMax = 3;
    if (next_ == groups_.size() || open_.size() == kOpenMax) return false;
    Group& group = groups_[next_];
    void *data[kMembersMax], *handles[kMembersMax];
    size_t capacities[kMembersMax];
    int tags[kMembersMax];
    for (size_t i = 0; i < group.members.size(); ++i) {
      Member& member = *group.members[i];
      data[i] = member.to->data() + member.to_offset;
      handles[i] = member.to_handle;
      capacities[i] = member.capacity;
      tags[i] = member.tag;
    }
    EXPECT_EQ(ncclSuccess, net().Irecv(pair_.receive, static_cast<int>(group.members.size()), data, capacities, tags,
                                       handles, nullptr, &group.receive))
        << LogText();
    if (group.receive == nullptr) return false;
    open_.push_back(&group);
    ++next_;
    return true;
  }

  // One look at a sender that is chosen at random. True when something was sent.
  bool Send() {
    constexpr size_t kSendsMax = 12;
    std::deque<Member*>& mine = unsent_[rng_.Between(0, kMembersMax - 1)];
    if (mine.empty() || sends_.size() == kSendsMax) return false;
    Member& member = *mine.front();
    EXPECT_EQ(ncclSuccess, net().Isend(pair_.send, member.from->data() + member.from_offset, member.bytes, member.tag,
                                       member.from_handle, nullptr, &member.send))
        << LogText();
    if (member.send == nullptr) return false;
    sends_.push_back(&member);
    mine.pop_front();
    return true;
  }

  bool TestSend() {
    int done = 0, size = -1;
    if (sends_.empty()) return false;
    EXPECT_EQ(ncclSuccess, net().Test(sends_.front()->send, &done, &size)) << LogText();
    if (done == 0) return false;
    EXPECT_EQ(static_cast<int>(sends_.front()->bytes), size);
    sends_.pop_front();
    return true;
  }

  bool TestGroup() {
    int done = 0, sizes[kMembersMax] = {};
    if (open_.empty()) return false;
    EXPECT_EQ(ncclSuccess, net().Test(open_.front()->receive, &done, sizes)) << LogText();
    if (done == 0) return false;
    for (size_t i = 0; i < open_.front()->members.size(); ++i) Check(*open_.front()->members[i], sizes[i]);
    open_.pop_front();
    return true;
  }

  // As soon as it is done: what landed later would be missing.
  void Check(const Member& member, int size) {
    EXPECT_EQ(static_cast<int>(member.bytes), size);
    const std::vector<char> got = member.to->Read();
    const auto begin = got.begin() + static_cast<long>(member.to_offset);
    const auto untouched = [](char c) { return c == Buffer::kFill; };
    EXPECT_EQ("", pattern_->Check(member.number, &*begin, member.bytes)) << "message " << member.number;
    EXPECT_TRUE(std::all_of(got.begin(), begin, untouched)) << "before message " << member.number;
    EXPECT_TRUE(std::all_of(begin + static_cast<long>(member.bytes), got.end(), untouched))
        << "after message " << member.number;
  }

  void Run(const std::vector<size_t>& sizes) {
    Plan(sizes);
    Deadline deadline;
    while ((next_ < groups_.size() || !open_.empty() || !sends_.empty()) && !HasFailure()) {
      bool moved = Post();
      moved |= Send();
      moved |= TestSend();
      moved |= TestGroup();
      if (moved) deadline.Restart();
      ASSERT_TRUE(moved || deadline.Yield()) << next_ << " of " << groups_.size() << " groups; " << LogText();
    }
    for (const Member& member : members_) {
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, member.from_handle));
      EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, member.to_handle));
    }
  }

  Rng rng_{TestSeed()};
  std::unique_ptr<Pattern> pattern_;
  std::deque<Member> members_;
  std::deque<Group> groups_;
  std::deque<Member*> unsent_[kMembersMax];  // by tag, in the order of the groups
  size_t next_ = 0;                          // the next group to post
  std::deque<Group*> open_;
  std::deque<Member*> sends_;
};

TEST_P(GroupsTest, EverySizeAtAnyOffset) {
  Run({0, 1, 8, 127, 128, 129, 2048, 4097, 64 * kKiB - 1, 64 * kKiB, 65537, 256 * kKiB - 8, 614400, kMiB + 3});
}

TEST_P(GroupsTest, LateCopies) {
  if (!lab_->is_fake()) GTEST_SKIP() << "a real driver's copies can't be slowed down";
  lab_->fake().delays(TestSeed(), 300);
  Run({0, 5, 4096, 65537, 300 * kKiB});
}

TEST_P(GroupsTest, LargeOnes) {
  Start({{"TCPX_TEST_GPU_SLOT_BYTES", "256K"}, {"TCPX_GPU_POOL_BYTES", "4M"}});
  Run({TimeScale() > 1 ? 2 * kMiB + 1 : 64 * kMiB});
}

INSTANTIATE_TEST_SUITE_P(EveryMode, GroupsTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
