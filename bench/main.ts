/**
 * `npm run bench`: compares the cost of Sluice with that of nginx, in one run on one machine. The
 * report goes to standard output, progress to standard error. docs/performance.md explains it.
 */
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  comparesGateways,
  comparesPeers,
  groupNames,
  runBench,
  type BenchOptions,
} from "./bench.ts";
import { formatReport } from "./report.ts";
import { readPeerDescription } from "./stand/peer-description.ts";
import { describeTargets } from "./targets.ts";

const defaultInstalledFolder = join(tmpdir(), "peers");

const help = `Usage: npm run bench -- [--quick | --full] [--only GROUP] [--peers FILE]... [--rounds N] [--json]

Options:
  --quick           a smoke of all groups in seconds; its figures say little
  --full            more rounds, and memory after a million calls
  --only GROUP      ${groupNames.join(", ")}
  --peers FILE      measure the gateway that this file describes, too: bench/peers has some; only the
                    groups with peers, unless --only names one
  --installed PATH  where the peers are installed (default: ${defaultInstalledFolder})
  --rounds N        measurements of each gateway, of which the median is shown
  --json            print the report as JSON
  --profile FOLDER  run the gateway under the runtime's CPU profiler, which writes there

Needs nginx, except for start, money, affinity, reports and ingest; uses wrk when it is installed.

${describeTargets()}`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean" },
      full: { type: "boolean" },
      only: { type: "string" },
      json: { type: "boolean" },
      peers: { type: "string", multiple: true },
      installed: { type: "string" },
      rounds: { type: "string" },
      profile: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) {
    console.log(help);
    return 0;
  }
  const { only, profile: profileFolder, peers: peerFiles = [] } = values;
  const isUnknown = only !== undefined && !groupNames.includes(only);
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  const isCount = rounds === undefined || (Number.isSafeInteger(rounds) && rounds > 0);
  if (isUnknown || !isCount || (peerFiles.length > 0 && !comparesPeers(only))) {
    console.error(help);
    return 2;
  }
  if (comparesGateways(only) && Bun.which("nginx") === null) {
    console.error("nginx is not installed: there is nothing to compare with");
    return 1;
  }
  if (profileFolder !== undefined) mkdirSync(profileFolder, { recursive: true });
  const planName = values.quick === true ? "quick" : values.full === true ? "full" : "default";
  const installedFolder = resolve(values.installed ?? defaultInstalledFolder);
  const json = values.json === true;
  return report({ planName, only, rounds, profileFolder, peerFiles, installedFolder, json });
}

interface Wanted extends Omit<BenchOptions, "peers" | "signal" | "progress"> {
  readonly peerFiles: readonly string[];
  readonly json: boolean;
}

async function report({ json, peerFiles, ...wanted }: Wanted): Promise<number> {
  const stopping = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => stopping.abort(new Error(`ended by ${name}`)));
  }
  const progress = (line: string): void => console.error(line);
  try {
    const peers = peerFiles.map(readPeerDescription);
    const result = await runBench({ ...wanted, peers, signal: stopping.signal, progress });
    console.log(json ? JSON.stringify(result, null, 2) : formatReport(result));
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}
