import type { ComparedRow, ProcessRow } from "../../store/process-row.ts";

/** Something that processes on one database must have in common and have not, or the reverse. */
export interface ProcessDifference {
  readonly kind: "limits-in-memory" | "limits-differ" | "peppers-differ";
  /** What it means and what to do, for operators. */
  readonly text: string;
}

export function processDifferences(
  processes: readonly ComparedRow[],
): readonly ProcessDifference[] {
  const live = newestOfPlaces(processes.filter(isLive));
  const all = [limitsInMemory(live), limitsDiffer(live), peppersDiffer(live)];
  return all.filter((difference) => difference !== undefined);
}

/** Without those that are being replaced. */
function newestOfPlaces(live: readonly ComparedRow[]): readonly ComparedRow[] {
  const byPlace = Map.groupBy(live, placeOf);
  return [...byPlace.values()].flatMap(
    (those) => those.toSorted((one, other) => other.startedAt - one.startedAt)[0] ?? [],
  );
}

const advice = "Set limits.store of all of them to the same server, and restart them.";

function limitsInMemory(live: readonly ComparedRow[]): ProcessDifference | undefined {
  const alone = live.filter(({ limitsDigest }) => limitsDigest === "memory");
  if (alone.length === 0 || live.length === 1) return undefined;
  const text =
    `${live.length} processes use this database, but limits are in the memory of ` +
    `${namesOf(alone)}, which grants every plan and every budget in full by itself. ${advice}`;
  return { kind: "limits-in-memory", text };
}

function limitsDiffer(live: readonly ComparedRow[]): ProcessDifference | undefined {
  const byServer = Map.groupBy(
    live.filter(({ limitsDigest = "memory" }) => limitsDigest !== "memory"),
    ({ limitsDigest }) => limitsDigest,
  );
  if (byServer.size < 2) return undefined;
  const places = [...byServer].map(([digest, those]) => `${digest} of ${namesOf(those)}`);
  const text =
    `limits.store names different servers (${places.join("; ")}), each of which grants every plan ` +
    `in full. ${advice}`;
  return { kind: "limits-differ", text };
}

/** While peppers are rotated, their order differs; each must know what another one may use. */
function peppersDiffer(live: readonly ComparedRow[]): ProcessDifference | undefined {
  const known = live.flatMap(({ pepperMarks }) => pepperMarks?.split(",")[0] ?? []);
  const lacking = live.filter(({ pepperMarks }) => {
    const own = pepperMarks?.split(",");
    return own !== undefined && known.some((mark) => !own.includes(mark));
  });
  if (lacking.length === 0) return undefined;
  const text =
    `auth.peppers of ${namesOf(lacking)} lacks the first pepper of another process, so keys that ` +
    "the other one issues or renews are refused there. Give all the same list.";
  return { kind: "peppers-differ", text };
}

function namesOf(processes: readonly ComparedRow[]): string {
  return processes.map(nameOf).join(", ");
}

export function nameOf({ name, number }: Pick<ProcessRow, "name" | "number">): string {
  return `process ${number} of ${name}`;
}

/** What is wrong with those that give no sign and that no live process has replaced. */
export function silencesAmong(processes: readonly ProcessRow[]) {
  const replaced = new Set(processes.filter(isLive).map(placeOf));
  const silent = processes.filter((row) => !isLive(row) && !replaced.has(placeOf(row)));
  return silent.map((row) => {
    return { row, text: `gives no sign for ${Math.round(row.silentMs / 1_000)} s.` };
  });
}

/** The rows with names that tell gateways of one host apart: with their admin addresses. */
export function withDistinctNames<Named extends Pick<ProcessRow, "name" | "number" | "adminUrl">>(
  rows: readonly Named[],
): readonly Named[] {
  const byName = Map.groupBy(rows, nameOf);
  return rows.map((row) => {
    const { name, adminUrl } = row;
    const isOne = byName.get(nameOf(row))?.every((other) => other.adminUrl === adminUrl);
    return isOne === true || adminUrl === "" ? row : { ...row, name: `${name} (${adminUrl})` };
  });
}

/** What a process has in common with the one that it replaces: its folder, host and number. */
export function placeOf({ id }: Pick<ProcessRow, "id">): string {
  return id.slice(0, id.lastIndexOf("-"));
}

/** A process that gave no sign for this long may have ended. */
const silenceLimitMs = 10_000;

export function isLive({ silentMs }: Pick<ProcessRow, "silentMs">): boolean {
  return silentMs <= silenceLimitMs;
}
