/**
 * `npm run peers`: compares the requests that Sluice and two peers send to Bedrock, with a judgement
 * of each difference. Exits with 1 when a difference has no judgement.
 *
 *   --record         writes what Sluice sends now, and asks no peer
 *   --folder PATH    where the peers are installed (default: in node_modules/.cache)
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compare, type Difference, type Peer } from "../test/bedrock/peers/compare.ts";
import { recordSluice, type Recorded } from "../test/bedrock/peers/record-sluice.ts";
import { peerRequests } from "../test/bedrock/peers/requests.ts";
import { runPeers } from "../test/bedrock/peers/run-peers.ts";

const { values: options } = parseArgs({
  options: {
    record: { type: "boolean", default: false },
    folder: {
      type: "string",
      default: join(import.meta.dir, "../node_modules/.cache/sluice-peers"),
    },
  },
});

/** Most examples of a group of differences. */
const shownPlaces = 8;
const recordedFile = join(import.meta.dir, "../test/bedrock/peers/sluice.json");
const sluice = await recordSluice(peerRequests);
if (options.record) {
  await Bun.write(recordedFile, JSON.stringify(sluice));
  Bun.spawnSync([process.execPath, "fmt", recordedFile]);
} else {
  const differences = differencesFrom(sluice, await runPeers(peerRequests, options.folder));
  for (const group of Map.groupBy(differences, headOf).values()) console.log(textOf(group));
  const unjudged = differences.filter(({ verdict }) => verdict === undefined).length;
  const count = (right: string): number =>
    differences.filter(({ verdict }) => verdict?.right === right).length;
  console.log(
    `${peerRequests.length} requests, ${differences.length} differences: Sluice is right in ` +
      `${count("sluice")}, the peer in ${count("peer")}, both in ${count("both")}; ` +
      `${unjudged} are not judged`,
  );
  process.exitCode = unjudged === 0 ? 0 : 1;
}

function differencesFrom(
  ours: Readonly<Record<string, Recorded>>,
  peers: Readonly<Record<Peer, Readonly<Record<string, Recorded>>>>,
): readonly Difference[] {
  const names: readonly Peer[] = ["litellm", "ai-sdk"];
  return peerRequests.flatMap(({ name }) =>
    names.flatMap((peer) => {
      const [own, theirs] = [ours[name], peers[peer][name]];
      if (own === undefined || theirs === undefined) throw new Error(`${peer} lacks ${name}`);
      return compare(name, peer, { sluice: own, theirs });
    }),
  );
}

/** Groups differences with the same reason. */
function headOf({ peer, verdict }: Difference): string {
  const judged = verdict === undefined ? "NOT JUDGED" : `${verdict.right}: ${verdict.why}`;
  return `${peer} | ${judged}`;
}

function textOf(group: readonly Difference[]): string {
  const shown = group.some(({ verdict }) => verdict === undefined) ? group.length : shownPlaces;
  const places = group.slice(0, shown).map(({ request, place, sluice: ours, theirs }) => {
    return `    ${request} | ${place} | ${ours.slice(0, 80)} | ${theirs.slice(0, 80)}`;
  });
  const more = group.length > shown ? [`    and ${group.length - shown} more`] : [];
  return [...group.slice(0, 1).map(headOf), ...places, ...more].join("\n");
}
