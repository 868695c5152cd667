// SPDX-License-Identifier: GPL-2.0-only
//
// Pull-type incast in ns-3: a receiver asks all sources for a fragment at once, over persistent TCP
// connections, and the replies meet at its access link.
//
//   source_i ── source rate ── core ── uplink rate ── ToR ── access rate ── receiver
//
// Prints one JSON object on standard output. A packet-hop is one frame delivered over one link,
// counted at the PhyRxEnd trace source of the receiving device; frames without payload (bare
// acknowledgements, connection set-up) are part of it and also counted apart.
//
// Router and scheduler by default are the fastest for this problem of those that ns-3 offers.

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

using namespace ns3;

struct Problem {
    uint32_t sources = 48;
    double durationSeconds = 0.269;
    double warmupSeconds = 0.029;
    uint32_t fragmentBytes = 104167;
    uint32_t requestBytes = 100;
    double eventRateHz = 375;
    std::string sourceRate = "100Gb/s";
    std::string uplinkRate = "800Gb/s";
    std::string accessRate = "25Gb/s";
    std::string sourceDelay = "1us";
    std::string uplinkDelay = "1us";
    std::string accessDelay = "1us";
    std::string congestion = "ns3::TcpNewReno";
    std::string routing = "nix";  // source routes, computed once: no table scan at the core
    std::string scheduler = "ns3::PriorityQueueScheduler";
    uint32_t segmentBytes = 1448;
    uint32_t initialWindowSegments = 10;
    uint32_t receiveWindowBytes = 4U << 20;
    uint32_t mtuBytes = 1500;
    uint32_t segmentsPerAck = 2;
    double delayedAckSeconds = 0.04;
    double minRtoSeconds = 0.2;
    uint32_t queuePackets = 0;  // of the ToR towards the receiver; 0: unlimited
    uint32_t markPackets = 0;   // a packet that finds so many queued there is marked; 0: none is
};

// Ethernet header and FCS, which lie in a buffer with the packet.
constexpr uint32_t kEthernetFrameBytes = 18;
// Bytes on the wire around an IP packet of Ethernet (header 14, FCS 4, preamble 8, gap 12), and
// of a ns-3 point-to-point device (PPP header). The difference is made up by the
// device's interframe gap, so that a full frame costs 1538 byte times on both simulators.
constexpr uint32_t kEthernetWireBytes = 38;
constexpr uint32_t kPppBytes = 2;
// IP header and the longest TCP header: whatever is larger than this carries payload.
constexpr uint32_t kLongestBareSegmentBytes = kPppBytes + 20 + 60;
constexpr uint16_t kPort = 5000;

double CpuSeconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Hops {
    uint64_t all = 0;
    uint64_t bare = 0;
    uint64_t dropped = 0;
    uint64_t marked = 0;

    void Delivered(Ptr<const Packet> frame) {
        ++all;
        if (frame->GetSize() <= kLongestBareSegmentBytes) {
            ++bare;
        }
    }
    void Dropped(Ptr<const Packet>) { ++dropped; }
    void DroppedItem(Ptr<const QueueDiscItem>) { ++dropped; }
    void Marked(Ptr<const QueueDiscItem>, const char*) { ++marked; }

    void Watch(const NetDeviceContainer& devices) {
        for (uint32_t i = 0; i < devices.GetN(); ++i) {
            auto device = DynamicCast<PointToPointNetDevice>(devices.Get(i));
            device->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Hops::Delivered, this));
            device->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Hops::Dropped, this));
            device->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Hops::Dropped, this));
        }
    }
};

/// The most that a device's queue held, as Ethernet frames without preamble and gap.
class QueuePeak {
  public:
    explicit QueuePeak(Ptr<NetDevice> device)
        : m_queue(DynamicCast<PointToPointNetDevice>(device)->GetQueue()) {
        m_queue->TraceConnectWithoutContext("PacketsInQueue",
                                            MakeCallback(&QueuePeak::Changed, this));
    }
    uint32_t Bytes() const { return m_bytes; }

  private:
    void Changed(uint32_t, uint32_t packets) {
        const uint32_t bytes = m_queue->GetNBytes() + packets * (kEthernetFrameBytes - kPppBytes);
        m_bytes = std::max(m_bytes, bytes);
    }

    Ptr<Queue<Packet>> m_queue;
    uint32_t m_bytes = 0;
};

/// Retransmission time-outs of the sources.
class Timeouts {
  public:
    void Watch(Ptr<Socket> socket) {
        socket->TraceConnectWithoutContext("CongState", MakeCallback(&Timeouts::Changed, this));
    }
    uint64_t Count() const { return m_count; }

  private:
    void Changed(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
        m_count += now == TcpSocketState::CA_LOSS ? 1 : 0;
    }
    uint64_t m_count = 0;
};

/// Answers every request with one fragment.
class Source {
  public:
    Source(const Problem& problem, Ptr<Node> node, Timeouts& timeouts)
        : m_problem(problem), m_timeouts(timeouts) {
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Source::Accept, this));
        m_listener->Listen();
    }

  private:
    void Accept(Ptr<Socket> socket, const Address&) {
        m_timeouts.Watch(socket);
        socket->SetRecvCallback(MakeCallback(&Source::Receive, this));
    }

    void Receive(Ptr<Socket> socket) {
        while (Ptr<Packet> packet = socket->Recv()) {
            m_requestedBytes += packet->GetSize();
        }
        for (; m_requestedBytes >= m_problem.requestBytes;
             m_requestedBytes -= m_problem.requestBytes) {
            const int sent = socket->Send(Create<Packet>(m_problem.fragmentBytes));
            NS_ABORT_MSG_IF(sent != static_cast<int>(m_problem.fragmentBytes),
                            "a source's send buffer cannot hold a fragment");
        }
    }

    const Problem& m_problem;
    Timeouts& m_timeouts;
    Ptr<Socket> m_listener;
    uint64_t m_requestedBytes = 0;
};

/// Requests every event from all sources at once and notes when its last byte has come.
class Receiver {
  public:
    Receiver(const Problem& problem, Ptr<Node> node, const std::vector<Ipv4Address>& sources)
        : m_problem(problem) {
        m_connections.reserve(sources.size());
        for (const Ipv4Address& address : sources) {
            Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
            m_connections.push_back({socket, 0});
            socket->SetRecvCallback(
                MakeCallback(&Receiver::Receive, this).Bind(&m_connections.back()));
            socket->Connect(InetSocketAddress(address, kPort));
        }
        ScheduleRequest();
    }

    uint64_t Requested() const { return m_requests.size(); }
    uint64_t Built() const { return m_built; }
    uint64_t Measured() const { return m_measured; }
    double MeanCompletionSeconds() const {
        return m_measured == 0 ? 0 : m_completionSeconds / static_cast<double>(m_measured);
    }
    double MaxCompletionSeconds() const { return m_maxCompletionSeconds; }

  private:
    struct Connection {
        Ptr<Socket> socket;
        uint64_t receivedBytes;
    };
    struct Event {
        Time requested;
        uint32_t missingFragments;
    };

    /// The k-th event comes at k / rate, k = 1, 2, …: one idle period first, to open connections.
    void ScheduleRequest() {
        const auto number = static_cast<double>(m_requests.size() + 1);
        Simulator::Schedule(Seconds(number / m_problem.eventRateHz) - Simulator::Now(),
                            &Receiver::Request, this);
    }

    void Request() {
        m_requests.push_back({Simulator::Now(), m_problem.sources});
        for (Connection& connection : m_connections) {
            connection.socket->Send(Create<Packet>(m_problem.requestBytes));
        }
        ScheduleRequest();
    }

    void Receive(Connection* connection, Ptr<Socket> socket) {
        const uint64_t before = connection->receivedBytes / m_problem.fragmentBytes;
        while (Ptr<Packet> packet = socket->Recv()) {
            connection->receivedBytes += packet->GetSize();
        }
        const uint64_t after = connection->receivedBytes / m_problem.fragmentBytes;
        for (uint64_t event = before; event < after; ++event) {
            if (--m_requests.at(event).missingFragments == 0) {
                Complete(m_requests[event]);
            }
        }
    }

    void Complete(const Event& event) {
        ++m_built;
        if (Simulator::Now() < Seconds(m_problem.warmupSeconds)) {
            return;
        }
        const double seconds = (Simulator::Now() - event.requested).GetSeconds();
        ++m_measured;
        m_completionSeconds += seconds;
        m_maxCompletionSeconds = std::max(m_maxCompletionSeconds, seconds);
    }

    const Problem& m_problem;
    std::vector<Connection> m_connections;
    std::vector<Event> m_requests;
    uint64_t m_built = 0;
    uint64_t m_measured = 0;
    double m_completionSeconds = 0;
    double m_maxCompletionSeconds = 0;
};

Problem ReadCommandLine(int argc, char** argv) {
    Problem problem;
    CommandLine command(__FILE__);
    command.AddValue("sources", "number of sources", problem.sources);
    command.AddValue("durationSeconds", "virtual time", problem.durationSeconds);
    command.AddValue("warmupSeconds", "time before which completions do not count",
                     problem.warmupSeconds);
    command.AddValue("fragmentBytes", "reply of one source to one request", problem.fragmentBytes);
    command.AddValue("requestBytes", "size of a request", problem.requestBytes);
    command.AddValue("eventRateHz", "events per second", problem.eventRateHz);
    command.AddValue("sourceRate", "source to core", problem.sourceRate);
    command.AddValue("uplinkRate", "core to ToR", problem.uplinkRate);
    command.AddValue("accessRate", "ToR to receiver", problem.accessRate);
    command.AddValue("sourceDelay", "propagation, source to core", problem.sourceDelay);
    command.AddValue("uplinkDelay", "propagation, core to ToR", problem.uplinkDelay);
    command.AddValue("accessDelay", "propagation, ToR to receiver", problem.accessDelay);
    command.AddValue("congestion", "TypeId of the congestion control", problem.congestion);
    command.AddValue("routing", "nix or global", problem.routing);
    command.AddValue("scheduler", "TypeId of the event scheduler", problem.scheduler);
    command.AddValue("segmentBytes", "TCP payload of a full segment", problem.segmentBytes);
    command.AddValue("initialWindowSegments", "TCP initial window", problem.initialWindowSegments);
    command.AddValue("receiveWindowBytes", "TCP send and receive buffers",
                     problem.receiveWindowBytes);
    command.AddValue("segmentsPerAck", "segments that call for an acknowledgement",
                     problem.segmentsPerAck);
    command.AddValue("delayedAckSeconds", "longest delay of an acknowledgement",
                     problem.delayedAckSeconds);
    command.AddValue("minRtoSeconds", "least retransmission time-out", problem.minRtoSeconds);
    command.AddValue("mtuBytes", "largest IP packet", problem.mtuBytes);
    command.AddValue("queuePackets", "ToR to receiver; 0: unlimited", problem.queuePackets);
    command.AddValue("markPackets", "a packet that finds so many is marked; 0: none is",
                     problem.markPackets);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(problem.sources == 0 || problem.fragmentBytes == 0,
                    "at least one source and one byte are needed");
    NS_ABORT_MSG_IF(problem.requestBytes <= 30,
                    "a request of 30 bytes or less is not told from a bare acknowledgement");
    NS_ABORT_MSG_IF(problem.routing != "nix" && problem.routing != "global",
                    "routing is nix or global");
    return problem;
}

void SetDefaults(const Problem& problem) {
    Time::SetResolution(Time::PS);
    GlobalValue::Bind("SchedulerType", TypeIdValue(TypeId::LookupByName(problem.scheduler)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName(problem.congestion)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(problem.segmentBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(problem.initialWindowSegments));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(problem.segmentsPerAck));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout",
                       TimeValue(Seconds(problem.delayedAckSeconds)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(problem.receiveWindowBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(problem.receiveWindowBytes));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(problem.minRtoSeconds)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::PointToPointNetDevice::Mtu", UintegerValue(problem.mtuBytes));
}

/// `limited`: a queueing discipline may stand above the device, which otherwise takes everything.
PointToPointHelper Link(const std::string& rate, const std::string& delay, bool limited = false) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetDeviceAttribute(
        "InterframeGap",
        TimeValue(DataRate(rate).CalculateBytesTxTime(kEthernetWireBytes - kPppBytes)));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
    if (!limited) {
        link.DisableFlowControl();
    }
    return link;
}

/// A queue of `queuePackets` above the device of the ToR, which itself keeps one waiting. A packet
/// that finds `markPackets` or more in it is marked: RED of the instantaneous length with one
/// threshold. The way back is unlimited.
void LimitQueue(const Problem& problem, Ptr<NetDevice> tor, Ptr<NetDevice> receiver, Hops& hops) {
    TrafficControlHelper control;
    control.Uninstall(NetDeviceContainer(tor, receiver));  // what came with the addresses
    DynamicCast<PointToPointNetDevice>(tor)->GetQueue()->SetMaxSize(QueueSize("1p"));
    const double threshold = problem.markPackets;
    const std::string limit = std::to_string(problem.queuePackets) + "p";
    if (problem.markPackets > 0) {
        control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(limit), "MinTh",
                                 DoubleValue(threshold), "MaxTh", DoubleValue(threshold), "QW",
                                 DoubleValue(1), "Gentle", BooleanValue(false), "UseEcn",
                                 BooleanValue(true), "UseHardDrop", BooleanValue(false));
    } else {
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(limit));
    }
    const Ptr<QueueDisc> queue = control.Install(tor).Get(0);
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Hops::DroppedItem, &hops));
    queue->TraceConnectWithoutContext("Mark", MakeCallback(&Hops::Marked, &hops));
}

void Run(int argc, char** argv) {
    const Problem problem = ReadCommandLine(argc, argv);
    SetDefaults(problem);

    NodeContainer sources(problem.sources);
    NodeContainer others(3);
    const Ptr<Node> core = others.Get(0);
    const Ptr<Node> tor = others.Get(1);
    const Ptr<Node> receiver = others.Get(2);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    if (problem.routing == "nix") {
        stack.SetRoutingHelper(Ipv4NixVectorHelper());
    }
    stack.Install(sources);
    stack.Install(others);

    Hops hops;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto connect = [&](Ptr<Node> near, Ptr<Node> far, PointToPointHelper link) {
        const NetDeviceContainer devices = link.Install(near, far);
        hops.Watch(devices);
        const Ipv4Address address = addresses.Assign(devices).GetAddress(0);
        addresses.NewNetwork();
        return address;
    };
    const auto sourceLink = Link(problem.sourceRate, problem.sourceDelay);
    std::vector<Ipv4Address> sourceAddresses;
    for (uint32_t i = 0; i < problem.sources; ++i) {
        sourceAddresses.push_back(connect(sources.Get(i), core, sourceLink));
    }
    connect(core, tor, Link(problem.uplinkRate, problem.uplinkDelay));
    connect(tor, receiver, Link(problem.accessRate, problem.accessDelay, problem.queuePackets > 0));
    if (problem.queuePackets > 0) {
        LimitQueue(problem, tor->GetDevice(tor->GetNDevices() - 1),
                   receiver->GetDevice(receiver->GetNDevices() - 1), hops);
    }
    const QueuePeak torPeak(tor->GetDevice(tor->GetNDevices() - 1));
    if (problem.routing == "global") {
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    }

    Timeouts timeouts;
    std::vector<Source> sourceApplications;
    sourceApplications.reserve(problem.sources);
    for (uint32_t i = 0; i < problem.sources; ++i) {
        sourceApplications.emplace_back(problem, sources.Get(i), timeouts);
    }
    Receiver receiverApplication(problem, receiver, sourceAddresses);

    Simulator::Stop(Seconds(problem.durationSeconds));
    const double cpuBefore = CpuSeconds();
    Simulator::Run();
    const double cpuSeconds = CpuSeconds() - cpuBefore;
    const double virtualSeconds = Simulator::Now().GetSeconds();
    const uint64_t simulatorEvents = Simulator::GetEventCount();
    Simulator::Destroy();

    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const Receiver& result = receiverApplication;
    std::cout.precision(9);
    std::cout << "{\"packet_hops\": " << hops.all << ", \"ack_hops\": " << hops.bare
              << ", \"packets_dropped\": " << hops.dropped
              << ", \"packets_marked\": " << hops.marked << ", \"timeouts\": " << timeouts.Count()
              << ", \"cpu_s\": " << cpuSeconds
              << ", \"hops_per_cpu_s\": " << static_cast<double>(hops.all) / cpuSeconds
              << ", \"virtual_s\": " << virtualSeconds << ", \"sim_events\": " << simulatorEvents
              << ", \"peak_rss_bytes\": " << usage.ru_maxrss * 1024
              << ", \"events_requested\": " << result.Requested()
              << ", \"events_built\": " << result.Built()
              << ", \"events_measured\": " << result.Measured()
              << ", \"tor_peak_bytes\": " << torPeak.Bytes()
              << ", \"mean_completion_s\": " << result.MeanCompletionSeconds()
              << ", \"max_completion_s\": " << result.MaxCompletionSeconds() << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
    try {
        Run(argc, argv);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "incast: " << error.what() << '\n';
        return 1;
    }
}
