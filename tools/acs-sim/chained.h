/*
 * The state of the chained ways: windows, devices, slots, and the threads that work on them.
 */
#ifndef ACS_SIM_CHAINED_H
#define ACS_SIM_CHAINED_H

#include "vehicle.h"

namespace design {

enum chained_mode {
    ONE_WORKER,  /* one caller, one window, one thread that inserts and issues */
    EACH_ISSUER, /* one caller, a thread for the window, one issuing thread per device */
    EACH_WINDOW  /* a caller and a worker with a window per device */
};

class chained;

/* The program's thread, or that of a window's part of it. */
class chained_caller : public thread {
public:
    chained_caller(run &r, chained &all, uint32_t part) : thread(r), all_(all), part_(part) {}

protected:
    bool decide(uint64_t now) override;

private:
    chained &all_;
    const uint32_t part_;
    size_t next_ = 0;
};

/* Inserts into one window or none, issues to devices first .. end - 1. */
class chained_worker : public thread {
public:
    chained_worker(run &r, chained &all, uint32_t inserts, uint32_t first, uint32_t end)
        : thread(r), all_(all), inserts_(inserts), first_(first), end_(end)
    {
    }

protected:
    bool decide(uint64_t now) override;

private:
    bool may_insert() const;
    void insert();
    void retire();
    uint32_t ready_device() const;
    void issue(uint32_t device);
    uint32_t record(uint32_t u);

    chained &all_;
    const uint32_t inserts_, first_, end_;
    uint32_t since_poll_ = 0;
};

struct window_part {
    std::vector<uint32_t> devices, program; /* whose tasks, and which */
    std::deque<uint32_t> fifo;
    uint32_t taken = 0;
    std::vector<uint32_t> ended; /* seen to have ended, not retired */
};

struct device_part {
    uint32_t first_slot, active;
    std::deque<uint32_t> ready;
};

struct slot_part {
    uint32_t stream, last, length, out; /* out: issued, not retired */
};

class chained : public vehicle {
public:
    explicit chained(chained_mode mode) : mode_(mode) {}

    void begin(run &r) override;
    void seen(uint32_t k, uint64_t now) override;
    uint64_t host_busy() const override;
    std::string setting() const override { return "up to " + std::to_string(highest_) + " slots"; }
    std::string note() const override;

    std::vector<window_part> windows;
    std::vector<device_part> devices;
    std::vector<slot_part> slots;

    void pushed(uint32_t part, uint32_t k, uint64_t now);
    void inserted(uint32_t k, uint64_t now);
    void issued(uint32_t k, uint64_t now);
    void retired(uint32_t part, const std::vector<uint32_t> &list, uint64_t now);
    void wake_callers();

    uint32_t place(uint32_t device, uint32_t k) const;
    std::vector<uint32_t> keep(uint32_t slot, uint32_t k) const;
    std::vector<uint32_t> waits(uint32_t slot, uint32_t k) const;
    void placed(uint32_t slot, uint32_t k);
    uint32_t slot_of(uint32_t k) const { return slot_[k]; }
    uint32_t event_of(uint32_t k) const { return event_[k]; }
    bool recorded(uint32_t k) const { return is_recorded_[k]; }
    uint32_t make_event(uint32_t u);
    void note_recorded(uint32_t u, uint32_t event);

private:
    void make_parts();
    void make_threads();
    void make_ready(uint32_t k);
    void wake_worker(uint32_t window, uint32_t device);
    void adapt(device_part &d);
    uint32_t part_of(uint32_t device) const { return device % static_cast<uint32_t>(windows.size()); }

    const chained_mode mode_;
    run *run_ = nullptr;
    std::vector<std::vector<uint32_t>> down_;
    std::vector<uint32_t> left_, slot_, event_, position_; /* left: upstream ops that are not issued */
    std::vector<bool> is_inserted_, is_issued_, is_recorded_;
    std::vector<std::vector<uint32_t>> slot_clock_, op_clock_; /* per slot, how many of its ops are ordered before */
    uint32_t highest_ = 4;
    std::vector<std::unique_ptr<chained_caller>> callers_;
    std::vector<std::unique_ptr<chained_worker>> workers_;
};

} // namespace design

#endif
