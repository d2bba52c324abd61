import type { BenchReport } from "./bench.ts";
import type { Figure } from "./figure.ts";
import { formatNumber } from "./format-number.ts";

interface Column {
  readonly title: string;
  /** Of the figure. */
  readonly name: string;
  /** The figure's value, or its comparison. */
  readonly shows: "value" | "compared";
}

const columns: readonly Column[] = [
  { title: "call, us", name: "calls.cpu", shows: "value" },
  { title: "x nginx", name: "calls.cpu", shows: "compared" },
  { title: "chunk, us", name: "chunks.cpu", shows: "value" },
  { title: "x nginx", name: "chunks.cpu", shows: "compared" },
  { title: "p99 at 16, ms", name: "latency.p99_at_16", shows: "value" },
  { title: "1/6 core: added p50", name: "paced.p50_at_sixth", shows: "compared" },
  { title: "p99", name: "paced.p99_at_sixth", shows: "compared" },
  { title: "1/2 core: added p50", name: "paced.p50_at_half", shows: "compared" },
  { title: "p99", name: "paced.p99_at_half", shows: "compared" },
  { title: "crowd: first p99, ms", name: "crowd.first_p99", shows: "value" },
  { title: "chunks a read", name: "crowd.per_read", shows: "value" },
  { title: "memory, MB", name: "calls.memory", shows: "value" },
];

const failed = "-";

/** A heading, and a row for each gateway: nginx, Sluice, and the peers. */
export function peerRows({ figures, peers }: BenchReport): readonly (readonly string[])[] {
  const byName = new Map(figures.map((figure) => [figure.name, figure]));
  const shown = columns.filter(({ name }) => byName.has(name));
  const rowOf = (gateway: string): readonly string[] => [
    gateway,
    ...shown.map(({ name, shows }) => cellOf(byName.get(name), gateway, shows)),
  ];
  const gateways = ["nginx", "Sluice", ...peers.map(({ name }) => name)];
  return [["gateway", ...shown.map(({ title }) => title)], ...gateways.map(rowOf)];
}

function cellOf(figure: Figure | undefined, gateway: string, shows: Column["shows"]): string {
  if (figure === undefined) return failed;
  const { comparison } = figure;
  if (gateway === "nginx") {
    const compared = comparison?.kind === "ratio" ? 1 : comparison?.nginx?.median;
    return formatNumber(shows === "value" ? figure.nginx : compared);
  }
  if (gateway === "Sluice") {
    return formatNumber(shows === "value" ? figure.sluice : comparison?.value.median);
  }
  const peer = figure.peers?.find(({ name }) => name === gateway);
  if (peer === undefined) return failed;
  return formatNumber(shows === "value" ? peer.value : peer.compared?.median);
}
