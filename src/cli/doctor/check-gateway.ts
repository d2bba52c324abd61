import { existsSync } from "node:fs";
import { join } from "node:path";
import { CommandError, type CommandIo } from "../command.ts";
import { cellOf, readRecord, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import type { AdminClient } from "../client/admin-client.ts";
import { processWarnings } from "../resources/processes.ts";
import { connect, findLostListener } from "../client/connect.ts";
import { NoAnswer } from "../client/http-client.ts";
import type { SettingsArguments } from "../serve/load-settings.ts";
import { commandLine } from "../program.ts";
import type { Finding } from "./finding.ts";

const subject = "gateway";

/** Whether a gateway is using the data directory, and which of its processes do not serve. */
export async function checkGateway(
  dataDir: string,
  chosen: SettingsArguments,
  io: CommandIo,
): Promise<Finding[]> {
  if (!existsSync(join(dataDir, "admin-access.json"))) {
    const lost = await findLostListener(dataDir);
    if (lost !== undefined) return [{ state: "failed", subject, ...lost }];
    return [{ state: "note", subject, text: "none is running with this configuration" }];
  }
  const local = { ...chosen, url: undefined, tokenFile: undefined, isOffline: false };
  const environment = { ...io.environment, adminUrl: undefined, adminToken: undefined };
  try {
    await using client = await connect(local, { ...io, environment });
    const processes = readRecords(await client.request("GET", "/status"), "data");
    const differing = await checkProcesses(client);
    const lacking = degradedOf(processes.filter(({ ready }) => ready === true));
    const dropped = droppedOf(processes);
    const idle = processes.filter(({ ready }) => ready !== true);
    const first = idle.length > 0 ? idle.map(notReady) : [readyOf(processes)];
    return [...first, ...lacking, ...dropped, ...differing];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const lost = error instanceof NoAnswer ? await findLostListener(dataDir) : undefined;
    if (lost !== undefined) return [{ state: "failed", subject, ...lost }];
    const advice = `start it again with \`${commandLine("serve", chosen)}\``;
    return [{ state: "failed", subject, text: error.message, advice }];
  }
}

/** Whether it fits together with the other gateways on its database. */
async function checkProcesses(client: AdminClient): Promise<readonly Finding[]> {
  try {
    const warnings = processWarnings(readRecord(await client.request("GET", "/processes")));
    return warnings.map((text) => ({ state: "failed", subject: "gateways", text }));
  } catch (error) {
    // Without the database, which is among the findings.
    if (error instanceof CommandError) return [];
    throw error;
  }
}

function readyOf({ length }: readonly ReplyRecord[]): Finding {
  const ready = length === 1 ? "its process is ready" : `its ${length} processes are all ready`;
  return { state: "ok", subject, text: `runs, and ${ready}` };
}

/** One warning for each thing that processes lack although they serve. */
function degradedOf(processes: readonly ReplyRecord[]): readonly Finding[] {
  const lacking = processes.filter((process) => typeof process["degraded"] === "string");
  const byLack = Map.groupBy(lacking, (process) => cellOf(process, "degraded"));
  return [...byLack].map(([lack, those]) => {
    const names = those.map(nameOf).join(", ");
    return {
      state: "warning",
      subject,
      text: `${names} ${those.length === 1 ? "is" : "are"} degraded: ${lack}`,
      advice: adviceOnProcess,
    };
  });
}

function droppedOf(processes: readonly ReplyRecord[]): readonly Finding[] {
  const count = processes.reduce((sum, one) => sum + Number(one["dropped_log_lines"] ?? 0), 0);
  if (count === 0) return [];
  return [
    {
      state: "warning",
      subject: "log",
      text: `${count} ${count === 1 ? "line has" : "lines have"} been dropped since the processes started`,
      advice:
        "the reader of the log is too slow or has stopped: look at it, raise " +
        "telemetry.log_buffer, or lower telemetry.log_level",
    },
  ];
}

const adviceOnProcess = "what is wrong is among these findings, or at the end of the gateway's log";

function nameOf(process: ReplyRecord): string {
  return `process ${cellOf(process, "process")}`;
}

function notReady(process: ReplyRecord): Finding {
  return {
    state: "failed",
    subject,
    text: `${nameOf(process)} is not ready: ${cellOf(process, "not_ready")}`,
    advice: adviceOnProcess,
  };
}
