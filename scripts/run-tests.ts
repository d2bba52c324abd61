/**
 * Runs the test suites; prints failures, a line for each file, and `N passed, N failed, N skipped`.
 *
 * `npm test` leaves out the files named `.long.test.ts`, which take more than some seconds each;
 * `npm run test:long` runs those. Both skip tests that need a program that is not installed.
 * `npm run test:all` runs everything in larger sizes, hardly two files at once, and fails
 * where a program is missing; `npm run scorecard -- --all` measures the figures of
 * docs/reliability.md. Arguments after the options are parts of file names: only those files run.
 * `--without=NAME` leaves out files with this part of a name.
 *
 * `npm run suites` prints how long each file took when it last ran, the slowest first.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";

/**
 * Suites mostly wait for processes: two at once use little more than one of two cores. Long ones have more processes:
 * two of them run beside two that only wait. Files share their modules, as they do one after the other: to load the
 * gateway for each takes a fifth longer.
 */
const inParallel = ["--parallel=3", "--no-isolate"];
const twoAtOnce = ["--parallel=2", "--no-isolate"];
interface Part {
  readonly isLong: boolean;
  readonly options: readonly string[];
  /** Parts of the names of its files. Default: all files. */
  readonly suites?: readonly string[];
  /** Parts of the names of files that another part has. */
  readonly without?: readonly string[];
}
/** Files that measure processor time, which other files running beside them would change. */
const measuring = ["failures/overload.long"];
/** Files that mostly wait, for minutes of limits to pass, and use a tenth of a core meanwhile. */
const waiting = [
  "failures/ledger-disk.long",
  "failures/places-valkey.long",
  "http/idle-connections.long",
  "machines/both-down.long",
  "machines/cut-off.long",
  "machines/valkey-attacks.long",
  "machines/valkey-faults.long",
];
/** Files that judge no times, which run beside one that goes on for minutes at a steady load. */
const fetching = ["test/clients/", "test/packages/"];
const soaking = ["machines/soak.long"];
/** Parts of one list run side by side, the lists one after the other. */
const choices = {
  "--quick": [[{ isLong: false, options: inParallel }]],
  "--long": [
    [
      { isLong: true, options: twoAtOnce, suites: waiting },
      { isLong: true, options: twoAtOnce, without: [...measuring, ...waiting] },
    ],
    [{ isLong: true, options: [], suites: measuring }],
  ],
  "--all": [
    [{ isLong: false, options: [] }],
    [
      { isLong: true, options: [], suites: soaking },
      { isLong: true, options: [], suites: fetching },
    ],
    [{ isLong: true, options: [], without: [...soaking, ...fetching] }],
  ],
} satisfies Record<string, readonly (readonly Part[])[]>;

const [option = "--quick", ...parts] = process.argv.slice(2);
/** Seconds by file, below the option that they ran with. */
const keptTimes = z.record(z.string(), z.record(z.string(), z.number()));
const timesPath = "node_modules/.cache/sluice/test-times.json";
const exclusion = "--without=";
const excluded = parts
  .filter((part) => part.startsWith(exclusion))
  .map((part) => part.slice(exclusion.length));
const filters = parts.filter((part) => !part.startsWith(exclusion));
process.exitCode = await main();

async function main(): Promise<number> {
  if (option === "--times") return printTimes();
  if (!isChoice(option)) {
    console.error(`run-tests: ${option} is none of ${Object.keys(choices).join(", ")}, --times`);
    return 2;
  }
  const sum = { passed: 0, failed: 0, skipped: 0 };
  let hasFailed = false;
  for (const parts of choices[option]) {
    for (const { exitCode, counts } of await Promise.all(parts.map(run))) {
      hasFailed ||= exitCode !== 0;
      sum.passed += counts.passed;
      sum.failed += counts.failed;
      sum.skipped += counts.skipped;
    }
  }
  console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  return !hasFailed && sum.failed === 0 && sum.passed > 0 ? 0 : 1;
}

interface Finished {
  readonly exitCode: number;
  readonly counts: Counts;
}

async function run(part: Part): Promise<Finished> {
  const files = filesOf(part);
  if (files.length === 0) return { exitCode: 0, counts: { passed: 0, failed: 0, skipped: 0 } };
  const folder = mkdtempSync(join(tmpdir(), "sluice-tests-"));
  const report = join(folder, "report.xml");
  try {
    const child = Bun.spawn(
      [
        process.execPath,
        "test",
        // Ends tests that hang, with room for a busy machine.
        "--timeout=180000",
        // Only failures are printed; passes are counted.
        "--only-failures",
        ...part.options,
        "--reporter=junit",
        `--reporter-outfile=${report}`,
        ...files,
      ],
      {
        stdio: ["ignore", "inherit", "inherit"],
        env: {
          ...process.env,
          SLUICE_TEST_ALL: option === "--all" ? "1" : "0",
          // Tests start more simultaneous fetches than the runtime allows by default.
          BUN_CONFIG_MAX_HTTP_REQUESTS: "8192",
        },
      },
    );
    const exitCode = await child.exited;
    const times = fileTimes(report);
    for (const line of [...times.map(lineOf), ...failures(report)]) console.log(line);
    keepTimes(times);
    return { exitCode, counts: readCounts(report) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isChoice(text: string): text is keyof typeof choices {
  return Object.hasOwn(choices, text);
}

function filesOf({ isLong, suites = [""], without = [] }: Part): readonly string[] {
  return suitePaths()
    .filter((file) => file.endsWith(".long.test.ts") === isLong)
    .filter((file) => suites.some((suite) => file.includes(suite)))
    .filter((file) => ![...without, ...excluded].some((other) => file.includes(other)))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
    .toSorted()
    .map((file) => `./${file}`);
}

/** Of all folders, so that no new one is forgotten. */
function suitePaths(): readonly string[] {
  const folders = readdirSync(".", { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !/^\.|^(?:node_modules|dist|data)$/.test(entry.name),
  );
  const globs = folders.map(({ name }) => new Bun.Glob(`${name}/**/*.test.ts`));
  const paths = globs.flatMap((glob) => [...glob.scanSync(".")]);
  return paths.filter((path) => !path.includes("node_modules/"));
}

interface FileTime {
  readonly file: string;
  readonly tests: number;
  readonly failed: number;
  readonly seconds: number;
}

/** Of each file of a run, those that failed at the end. */
function fileTimes(report: string): readonly FileTime[] {
  const suites = [...readReport(report).matchAll(/<testsuite name="([^"]*\.ts)"[^>]*>/g)];
  const times = suites.map(([element, file = ""]) => {
    const failed = countIn(element, "failures") + countIn(element, "errors");
    const [, time = "0"] = /\btime="([\d.]+)"/.exec(element) ?? [];
    return { file, failed, tests: countIn(element, "tests"), seconds: Number(time) };
  });
  return times.toSorted((one, other) => one.failed - other.failed);
}

function lineOf({ file, tests, failed, seconds }: FileTime): string {
  return `${failed === 0 ? "ok    " : "FAILED"}  ${file}: ${tests} tests, ${seconds.toFixed(1)} s`;
}

function readTimes(): z.infer<typeof keptTimes> {
  try {
    return keptTimes.parse(JSON.parse(readFileSync(timesPath, "utf8")));
  } catch {
    return {};
  }
}

/** Fails no run. */
function keepTimes(times: readonly FileTime[]): void {
  const all = readTimes();
  const own = Object.fromEntries(times.map(({ file, seconds }) => [file, seconds]));
  const text = JSON.stringify({ ...all, [option]: { ...all[option], ...own } });
  try {
    mkdirSync(dirname(timesPath), { recursive: true });
    writeFileSync(`${timesPath}.${process.pid}`, text);
    renameSync(`${timesPath}.${process.pid}`, timesPath);
  } catch (error) {
    console.error(`The times of the suites were not kept: ${String(error)}`);
  }
}

function printTimes(): number {
  for (const [group, kept] of Object.entries(readTimes())) {
    const times = Object.entries(kept).filter(([file]) => existsSync(file));
    const sum = times.reduce((total, [, seconds]) => total + seconds, 0);
    console.log(`${group}: ${times.length} files, ${sum.toFixed(0)} s one after the other`);
    for (const [file, seconds] of times.toSorted(([, one], [, other]) => other - one)) {
      console.log(`${seconds.toFixed(1).padStart(8)} s  ${file}`);
    }
  }
  return 0;
}

/**
 * Each failed test with its reason, once more at the end: what a log keeps of a long run is often
 * its last lines.
 */
function failures(report: string): readonly string[] {
  const failed =
    /<testcase name="([^"]*)"[^>]* file="([^"]*)"[^>]*>\s*<(?:failure|error)\b[^>]*?(?:\/>|>([^<]*))/g;
  return [...readReport(report).matchAll(failed)].map(([, name = "", file = "", reason = ""]) =>
    unescapeXml(`FAILED  ${file}: ${name}\n${reason.slice(0, 2_000).trimEnd()}`),
  );
}

function unescapeXml(text: string): string {
  const named: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replaceAll(/&(?:#(\d+)|(\w+));/g, (whole, code: string | undefined, name: string) =>
    code === undefined ? (named[name] ?? whole) : String.fromCodePoint(Number(code)),
  );
}

/** The JUnit report, which the runner writes even when tests fail; empty if it crashed. */
function readReport(report: string): string {
  try {
    return readFileSync(report, "utf8");
  } catch {
    return "";
  }
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Reads the root element of the report; a run without a report counts as one failed test. */
function readCounts(report: string): Counts {
  const root = /<testsuites[^>]*>/.exec(readReport(report))?.[0];
  if (root === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const failed = countIn(root, "failures") + countIn(root, "errors");
  const skipped = countIn(root, "skipped");
  return { passed: countIn(root, "tests") - failed - skipped, failed, skipped };
}

function countIn(element: string, name: string): number {
  return Number(new RegExp(`\\b${name}="([0-9]+)"`).exec(element)?.[1] ?? 0);
}
