/** What the design allows Sluice to cost, on a quiet machine. CPU time is a multiple of nginx's. */
export const targets = {
  call: 4.6,
  callWithTwoTargets: 4.9,
  /** 1.15 x a chat call. */
  callInOtherDialects: 5.3,
  chunk: 1.8,
  embeddings: 2.4,
  pacedP99AddedMs: 3,
  garbageKb: 18,
  atRestMb: 125,
  afterCallsMb: 200,
  openStreamKb: 40,
  /** Added to a call by prices and one budget. */
  moneyUs: 4,
  /** Added to a call by its session. */
  affinityUs: 1,
} as const;

/** For the help. */
export function describeTargets(): string {
  const { call, callWithTwoTargets, callInOtherDialects, chunk, embeddings, ...bytes } = targets;
  return `Targets, on a quiet machine: a call ${call} x nginx, with two targets ${callWithTwoTargets} x, through
Responses or Messages ${callInOtherDialects} x, a streamed chunk ${chunk} x, embeddings ${embeddings} x; p99 added at half a core ${bytes.pacedP99AddedMs} ms; garbage of
a call ${bytes.garbageKb} kB; memory (PSS of all processes) ${bytes.atRestMb} MB at rest, ${bytes.afterCallsMb} MB after 100,000
calls, ${bytes.openStreamKb} kB for an open stream; prices and one budget ${bytes.moneyUs} us a call, a session
${bytes.affinityUs} us.`;
}
