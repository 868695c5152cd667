/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Congestion control that does nothing: the congestion window is WINDOW segments from the first to
 * the last byte, whatever is lost. One exception is the kernel's own: a retransmission time-out
 * sends a single segment before the first acknowledgment restores the window.
 *
 * Licensed twice, since the kernel accepts a congestion control only under a licence that it counts
 * as compatible with its own. Compiled with -DWINDOW=segments -DNAME="name".
 */
#include <linux/types.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "Dual BSD/GPL";

/* Only the members used here; BTF relocation finds them in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock;
struct rate_sample;
struct tcp_sock {
    __u32 snd_cwnd;
};
struct tcp_congestion_ops {
    __u32 (*ssthresh)(struct sock* sk);
    void (*cong_control)(struct sock* sk, __u32 ack, int flag, const struct rate_sample* sample);
    __u32 (*undo_cwnd)(struct sock* sk);
    void (*init)(struct sock* sk);
    char name[16];
};
#pragma clang attribute pop

static struct tcp_sock* tcp_sk(struct sock* sk) { return (struct tcp_sock*)sk; }

SEC("struct_ops/init")
void BPF_PROG(init, struct sock* sk) { tcp_sk(sk)->snd_cwnd = WINDOW; }

SEC("struct_ops/control")
void BPF_PROG(control, struct sock* sk) { tcp_sk(sk)->snd_cwnd = WINDOW; }

SEC("struct_ops/threshold")
__u32 BPF_PROG(threshold, struct sock* sk) { return WINDOW; }

SEC("struct_ops/undo")
__u32 BPF_PROG(undo, struct sock* sk) { return WINDOW; }

SEC(".struct_ops")
struct tcp_congestion_ops static_window = {
    .ssthresh = (void*)threshold,
    .cong_control = (void*)control,
    .undo_cwnd = (void*)undo,
    .init = (void*)init,
    .name = NAME,
};
