/**
 * `npm run bench`: compares the cost of Sluice with that of nginx, in one run on one machine. The
 * report goes to standard output, progress to standard error. docs/performance.md explains it.
 */
import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { comparesGateways, groupNames, runBench, type BenchOptions } from "./bench.ts";
import { formatReport } from "./report.ts";

const help = `Usage: npm run bench -- [--quick | --full] [--only GROUP] [--json]

Options:
  --quick           a smoke of all groups in seconds; its figures say little
  --full            more rounds, and memory after a million calls
  --only GROUP      ${groupNames.join(", ")}
  --json            print the report as JSON
  --profile FOLDER  run the gateway under the runtime's CPU profiler, which writes there

Needs nginx, for all but the group reports; uses wrk when it is installed.`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean" },
      full: { type: "boolean" },
      only: { type: "string" },
      json: { type: "boolean" },
      profile: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) {
    console.log(help);
    return 0;
  }
  if (values.only !== undefined && !groupNames.includes(values.only)) {
    console.error(help);
    return 2;
  }
  if (comparesGateways(values.only) && Bun.which("nginx") === null) {
    console.error("nginx is not installed: there is nothing to compare with");
    return 1;
  }
  if (values.profile !== undefined) mkdirSync(values.profile, { recursive: true });
  const planName = values.quick === true ? "quick" : values.full === true ? "full" : "default";
  const { only, profile: profileFolder } = values;
  return report({ planName, only, profileFolder, json: values.json === true });
}

interface Wanted extends Pick<BenchOptions, "planName" | "only" | "profileFolder"> {
  readonly json: boolean;
}

async function report({ json, ...wanted }: Wanted): Promise<number> {
  const stopping = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => stopping.abort(new Error(`ended by ${name}`)));
  }
  const progress = (line: string): void => console.error(line);
  try {
    const result = await runBench({ ...wanted, signal: stopping.signal, progress });
    console.log(json ? JSON.stringify(result, null, 2) : formatReport(result));
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}
