import type { Recorded } from "./record-sluice.ts";
import { verdicts, type Verdict } from "./verdicts.ts";

export type Peer = "litellm" | "ai-sdk";

/** One place in which a peer sends something else for the same request. */
export interface Difference {
  readonly request: string;
  readonly peer: Peer;
  /** As `messages[0].content[1].text`; `refused` where one of the two sends nothing. */
  readonly place: string;
  readonly sluice: string;
  readonly theirs: string;
  /** Undefined: nobody has judged it yet. */
  readonly verdict: Verdict | undefined;
}

/** Where the two bodies differ in meaning, with who is right. */
export function compare(
  request: string,
  peer: Peer,
  { sluice, theirs }: { readonly sluice: Recorded; readonly theirs: Recorded },
): readonly Difference[] {
  const differenceAt = (place: string, ours: unknown, other: unknown): Difference => {
    const at = { request, peer, place };
    const texts = { sluice: JSON.stringify(ours) ?? "-", theirs: JSON.stringify(other) ?? "-" };
    return { ...at, ...texts, verdict: verdicts.find((verdict) => isAbout(verdict, at)) };
  };
  if ("refused" in sluice || "refused" in theirs) {
    if ("refused" in sluice && "refused" in theirs) return [];
    const said = (recorded: Recorded): string =>
      "refused" in recorded ? recorded.refused.message : "sends it";
    return [differenceAt("refused", said(sluice), said(theirs))];
  }
  const ours = new Map(leavesOf(sluice.body));
  const others = new Map(leavesOf(theirs.body));
  return [...new Set([...ours.keys(), ...others.keys()])]
    .filter((place) => ours.get(place) !== others.get(place))
    .map((place) => differenceAt(place, ours.get(place), others.get(place)));
}

function isAbout(
  { requests, peers = ["litellm", "ai-sdk"], places }: Verdict,
  { request, peer, place }: Pick<Difference, "request" | "peer" | "place">,
): boolean {
  return (requests?.test(request) ?? true) && peers.includes(peer) && places.test(place);
}

/** Every value by its place; what is empty counts as one. Texts that are JSON are looked into. */
function* leavesOf(value: unknown, place = ""): Generator<[string, unknown]> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* leavesOf(item, `${place}[${index}]`);
    if (value.length === 0) yield [place, "[]"];
    return;
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value);
    for (const [name, field] of fields) {
      yield* leavesOf(field, place === "" ? name : `${place}.${name}`);
    }
    if (fields.length === 0) yield [place, "{}"];
    return;
  }
  if (typeof value === "string" && place.endsWith("jsonSchema.schema")) {
    yield* leavesOf(JSON.parse(value), place);
  } else {
    yield [place, value];
  }
}
