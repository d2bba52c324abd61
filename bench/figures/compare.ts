import type { Figure, PeerValue } from "../figure.ts";
import { summarize } from "../statistics.ts";
import type { Round } from "./context.ts";

type Compared = Pick<Figure, "nginx" | "sluice" | "comparison" | "peers">;

/** Takes one number of each measurement. */
export function pick<Value>(
  rounds: readonly Round<Value>[],
  of: (value: Value) => number,
): readonly Round<number>[] {
  return rounds.map(({ nginx, sluice, peers }) => ({
    nginx: of(nginx),
    sluice: of(sluice),
    peers: new Map(peers.entries().map(([name, value]) => [name, of(value)])),
  }));
}

/** The median of each gateway. */
export function medians(rounds: readonly Round<number>[]): Compared {
  return {
    nginx: summarize(rounds.map(({ nginx }) => nginx)).median,
    sluice: summarize(rounds.map(({ sluice }) => sluice)).median,
    peers: peersOf(rounds),
  };
}

/** The ratios of consecutive measurements, too. */
export function ratios(rounds: readonly Round<number>[]): Compared {
  const divided = rounds.map((round) => pick([round], (value) => value / round.nginx)).flat();
  return compared(rounds, divided, "ratio");
}

/** Medians, and what was made of each measurement by comparison. */
export function compared(
  rounds: readonly Round<number>[],
  comparisons: readonly Round<number>[],
  kind: "ratio" | "added",
): Compared {
  const nginx = summarize(comparisons.map((round) => round.nginx));
  const peers = peersOf(rounds).map((peer) => {
    const own = comparisons.flatMap((round) => round.peers.get(peer.name) ?? []);
    return { ...peer, compared: summarize(own) };
  });
  return {
    ...medians(rounds),
    comparison: {
      kind,
      value: summarize(comparisons.map(({ sluice }) => sluice)),
      ...(kind === "added" && { nginx }),
    },
    peers,
  };
}

/** Those whose loads all succeeded. */
function peersOf(rounds: readonly Round<number>[]): readonly PeerValue[] {
  return [...(rounds[0]?.peers.keys() ?? [])].flatMap((name) => {
    const values = rounds.flatMap(({ peers }) => peers.get(name) ?? []);
    return values.length < rounds.length ? [] : [{ name, value: summarize(values).median }];
  });
}
