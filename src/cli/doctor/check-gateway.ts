import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { passesByItself } from "../../control/platform/process-status.ts";
import { CommandError, type CommandIo, reasonOf } from "../command.ts";
import { cellOf, readRecord, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import type { AdminClient } from "../client/admin-client.ts";
import { processWarnings } from "../resources/processes.ts";
import { connect, findLostListener } from "../client/connect.ts";
import { NoAnswer } from "../client/http-client.ts";
import type { SettingsArguments } from "../serve/load-settings.ts";
import { commandLine } from "../program.ts";
import { refuseTaken } from "../../edge/listen.ts";
import { checkOthers } from "./check-database.ts";
import { type Finding, findingsOn } from "./finding.ts";

const { ok, note, warning, failed } = findingsOn("gateway");

/** Whether a gateway is using the data directory, and which of its processes do not serve. */
export async function checkGateway(
  config: Config,
  chosen: SettingsArguments,
  io: CommandIo,
): Promise<readonly Finding[]> {
  const { dataDir } = config;
  if (!existsSync(join(dataDir, "admin-access.json"))) {
    const lost = await findLostListener(dataDir);
    if (lost !== undefined) return [failed(lost.text, lost.advice)];
    return [note("none is running with this configuration"), ...(await checkStart(config, io))];
  }
  const local = { ...chosen, url: undefined, tokenFile: undefined, isOffline: false };
  const environment = { ...io.environment, adminUrl: undefined, adminToken: undefined };
  try {
    await using client = await connect(local, { ...io, environment });
    const processes = readRecords(await client.request("GET", "/status"), "data");
    const found = [...processes.map(findingOn), ...droppedOf(processes)];
    return [...found, ...(await checkProcesses(client))];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const lost = error instanceof NoAnswer ? await findLostListener(dataDir) : undefined;
    if (lost !== undefined) return [failed(lost.text, lost.advice)];
    const again = `start it again with \`${commandLine("serve", chosen)}\``;
    const hasEnded = error instanceof NoAnswer;
    return [failed(error.message, again), ...(hasEnded ? await checkStart(config, io) : [])];
  }
}

/** What would go wrong with a start: with its addresses, and with other gateways on the database. */
async function checkStart(config: Config, io: CommandIo): Promise<readonly Finding[]> {
  const { data, admin } = config.listen;
  const listening = [data, admin].flatMap((address) => {
    try {
      refuseTaken(address);
      return [];
    } catch (error) {
      const advice = "stop the other program that has the port, or change `listen`";
      return findingsOn("listen").failed(reasonOf(error), advice);
    }
  });
  return [...listening, ...(await checkOthers(config, io))];
}

/** Whether it fits together with the other gateways on its database. */
async function checkProcesses(client: AdminClient): Promise<readonly Finding[]> {
  try {
    const warnings = processWarnings(readRecord(await client.request("GET", "/processes")));
    return warnings.map((text) => {
      const gateways = findingsOn("gateways");
      if (text.includes(passesByItself)) return gateways.note(text);
      // A degraded process serves calls, and one that gives no sign may.
      const isOfOne = / is degraded: | gives no sign for /.test(text);
      return (isOfOne ? gateways.warning : gateways.failed)(text);
    });
  } catch (error) {
    // Without the database, which is among the findings.
    if (error instanceof CommandError) return [];
    throw error;
  }
}

function droppedOf(processes: readonly ReplyRecord[]): readonly Finding[] {
  const lines = processes.reduce((sum, one) => sum + Number(one["dropped_log_lines"] ?? 0), 0);
  if (lines === 0) return [];
  const text = `lines dropped since the processes started: ${lines}`;
  const advice =
    "the reader of the log is too slow or has stopped: look at it, raise telemetry.log_buffer, " +
    "or lower telemetry.log_level";
  return [findingsOn("log").warning(text, advice)];
}

function findingOn(process: ReplyRecord): Finding {
  const name = `process ${cellOf(process, "process")}`;
  const advice = "what is wrong is among these findings, or at the end of the gateway's log";
  if (process["ready"] !== true) {
    return failed(`${name} is not ready: ${cellOf(process, "not_ready")}`, advice);
  }
  const { degraded } = process;
  if (typeof degraded !== "string") return ok(`${name} is ready`);
  const text = `${name} is degraded: ${cellOf(process, "degraded")}`;
  return degraded.includes(passesByItself) ? note(text) : warning(text, advice);
}
