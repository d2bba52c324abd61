import { existsSync } from "node:fs";
import { join } from "node:path";
import { demoDataDir } from "../../config/demo.ts";
import { usualConfigPaths } from "../../config/environment.ts";
import { formatProblems, parseConfig } from "../../config/load.ts";
import type { Config } from "../../config/config.ts";
import { priceNotices } from "../../config/prices/effective-prices.ts";
import { checkWarnings } from "../../config/problems/warnings.ts";
import { exitCodes } from "../../process/program.ts";
import { CommandError, type Command, type CommandIo } from "../command.ts";
import { loadSettings, type SettingsArguments } from "../serve/load-settings.ts";
import { readConfigFile } from "../read-input.ts";
import {
  addSettingsOptions,
  commandLine,
  exitCodeHelp,
  settingsOf,
  type SettingsTyped,
} from "../program.ts";
import { checkDatabase } from "./check-database.ts";
import { checkGateway } from "./check-gateway.ts";
import { checkLimitStore } from "./check-limit-store.ts";
import { checkMachine } from "./check-machine.ts";
import { checkTargets } from "./check-targets.ts";
import { formatFinding, type Finding, findingsOn } from "./finding.ts";

interface DoctorTyped extends SettingsTyped {
  readonly targets: boolean;
  readonly probe?: true;
  readonly json?: true;
}

export const doctorCommand: Command = (made, { io, action }) => {
  addSettingsOptions(made)
    .description(
      "Finds out why a gateway does not work, and what to do about it. Checks the configuration, " +
        "the data directory, the disk, open files, a PostgreSQL server, the server of " +
        "limits.store, the gateway if one is running, and each target: its credential, whether it " +
        "can be reached, and whether it answers. It asks each target for up to 16 tokens. Run it " +
        "as the user of the gateway and with its environment, because credentials depend on both.",
    )
    .option("--no-targets", "Send nothing to any provider.")
    .option(
      "--probe",
      "Also find out which settings and quirks each server of the kind openai needs, with up to " +
        "eight more small requests to each target.",
    )
    .option("--json", 'Print {"ok": ..., "findings": [...]} instead of text.')
    .addHelpText(
      "after",
      exitCodeHelp("nothing is wrong, apart from warnings", "something is wrong"),
    )
    .action(action((options: DoctorTyped) => diagnose(options, io)));
};

async function diagnose(options: DoctorTyped, io: CommandIo): Promise<number> {
  const findings: Finding[] = [];
  for await (const found of examine(options, io)) {
    findings.push(...found);
    if (options.json !== true) for (const finding of found) io.print(formatFinding(finding));
  }
  const failures = findings.filter(({ state }) => state === "failed").length;
  if (options.json === true) io.print(JSON.stringify({ ok: failures === 0, findings }));
  else io.print(`\n${summaryOf(findings)}`);
  return failures === 0 ? exitCodes.ok : exitCodes.failed;
}

async function* examine(options: DoctorTyped, io: CommandIo): AsyncGenerator<readonly Finding[]> {
  const chosen = settingsOf(options);
  const path = chosen.config ?? io.environment.configPath;
  const read = path === undefined ? [checkDemo(chosen)] : checkConfiguration(path, io);
  yield read;
  if (read.some(({ state }) => state === "failed")) return;
  const config = readSettings(chosen, io);
  if (config instanceof CommandError) {
    yield [findingsOn("environment").failed(config.message)];
    return;
  }
  yield checkMachine(config);
  yield await checkDatabase(config, io);
  yield await checkLimitStore(config, io);
  yield await checkGateway(config, chosen, io);
  if (options.targets && path !== undefined) {
    yield await checkTargets(config, io, options.probe === true);
  }
}

/** The configuration, or an error that would also prevent a start, such as an invalid proxy. */
function readSettings(chosen: SettingsArguments, io: CommandIo): Config | CommandError {
  try {
    return loadSettings(chosen, io).config;
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
}

const { ok, note, warning, failed } = findingsOn("configuration");

/** Without a file there must at least be a demo: else the gateway's file is somewhere else. */
function checkDemo({ "data-dir": dataDir = demoDataDir }: SettingsArguments): Finding {
  const missing = `there is no ${usualConfigPaths.join(", nor ")}`;
  if (existsSync(join(dataDir, "admin-access.json"))) {
    return note(`${missing}: the demo, whose provider is simulated`);
  }
  return failed(
    `${missing}, SLUICE_CONFIG is not set, and no demo runs in ${dataDir}`,
    "name the file of the gateway with --config, or run this in its folder; or start the demo " +
      `with \`${commandLine("serve")}\``,
  );
}

function checkConfiguration(path: string, io: CommandIo): readonly Finding[] {
  const fix = `correct it; \`sluice check-config ${path}\` checks it again`;
  try {
    const source = { name: path, env: io.environment.variables };
    const result = parseConfig(readConfigFile(path), source);
    if (!result.ok) {
      const [, ...lines] = formatProblems(path, result.problems).split("\n");
      return lines.map((text) => failed(text, fix));
    }
    const warnings = checkWarnings(result.config, io.clock.now());
    const notices = priceNotices(result.config, io.clock.now()).map((text) =>
      findingsOn("prices").note(text),
    );
    return [ok(`${path} is good`), ...warnings.map((text) => warning(text)), ...notices];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [failed(error.message, "name another --config")];
  }
}

function summaryOf(findings: readonly Finding[]): string {
  const count = (wanted: Finding["state"]): number =>
    findings.filter(({ state }) => state === wanted).length;
  const [failures, warnings] = [count("failed"), count("warning")];
  const warned = warnings === 0 ? "" : `, ${warnings} ${warnings === 1 ? "warning" : "warnings"}`;
  return failures === 0 ? `Nothing is wrong${warned}.` : `${failures} failed${warned}.`;
}
