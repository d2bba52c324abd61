/** The size of a run; each of its counts and times has its limit here. */
export interface BenchPlan {
  /** The longest time of the whole run. */
  readonly limitMs: number;
  /** Calls by which a gateway compiles its code before it is compared, and their longest time. */
  readonly warmUpCalls: number;
  readonly warmUpMs: number;
  /** Measurements of each gateway, in alternation. */
  readonly rounds: number;
  /** The longest time of one measurement of a peer, which may be far too slow for a load. */
  readonly peerMs: number;
  readonly callsMs: number;
  readonly latencyMs: number;
  /** The time of a load whose calls come at times of their own. */
  readonly pacedMs: number;
  readonly embeddingsMs: number;
  readonly streams: StreamLoad;
  /** As many streams as fill a core. */
  readonly crowd: StreamLoad;
  /** The number of calls over which garbage is counted. */
  readonly garbageCalls: number;
  /** The total numbers of calls after which memory is read. */
  readonly memoryCalls: readonly [few: number, many: number];
  readonly openStreams: readonly [few: number, many: number];
  /** The time that streams are open before memory is read. */
  readonly openStreamsMs: number;
  /** How long the process's event loop is watched. */
  readonly holdsMs: number;
  /** The number of calls in the ledger for reports. */
  readonly reportedCalls: number;
}

export interface StreamLoad {
  readonly streams: number;
  readonly chunks: number;
  readonly pauseMs: number;
}

export const planNames = ["quick", "default", "full"] as const;
export type PlanName = (typeof planNames)[number];

export const plans: Readonly<Record<PlanName, BenchPlan>> = {
  quick: {
    limitMs: 300_000,
    warmUpCalls: 1_000,
    warmUpMs: 3_000,
    rounds: 1,
    peerMs: 30_000,
    callsMs: 1_000,
    latencyMs: 300,
    pacedMs: 500,
    embeddingsMs: 400,
    streams: { streams: 20, chunks: 40, pauseMs: 20 },
    crowd: { streams: 60, chunks: 40, pauseMs: 20 },
    garbageCalls: 2_000,
    memoryCalls: [2_000, 4_000],
    openStreams: [100, 300],
    openStreamsMs: 300,
    holdsMs: 3_000,
    reportedCalls: 20_000,
  },
  default: {
    limitMs: 1_200_000,
    warmUpCalls: 40_000,
    warmUpMs: 60_000,
    rounds: 5,
    peerMs: 30_000,
    callsMs: 2_000,
    latencyMs: 1_000,
    pacedMs: 3_000,
    embeddingsMs: 2_000,
    streams: { streams: 100, chunks: 200, pauseMs: 20 },
    crowd: { streams: 600, chunks: 200, pauseMs: 20 },
    garbageCalls: 10_000,
    memoryCalls: [100_000, 300_000],
    openStreams: [300, 3_000],
    openStreamsMs: 3_000,
    holdsMs: 10_000,
    reportedCalls: 200_000,
  },
  full: {
    limitMs: 2_400_000,
    warmUpCalls: 50_000,
    warmUpMs: 60_000,
    rounds: 11,
    peerMs: 60_000,
    callsMs: 3_000,
    latencyMs: 2_000,
    pacedMs: 5_000,
    embeddingsMs: 3_000,
    streams: { streams: 100, chunks: 400, pauseMs: 20 },
    crowd: { streams: 600, chunks: 400, pauseMs: 20 },
    garbageCalls: 10_000,
    memoryCalls: [100_000, 1_000_000],
    openStreams: [300, 3_000],
    openStreamsMs: 3_000,
    holdsMs: 60_000,
    reportedCalls: 5_000_000,
  },
};
