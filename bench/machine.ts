import { cpus, release, type as systemName } from "node:os";
import { loadGenerator } from "./load/drive-calls.ts";

/** The machine of the figures, without its name. */
export interface MachineDescription {
  readonly system: string;
  readonly cores: number;
  readonly processor: string;
  readonly runtime: string;
  readonly nginx: string;
  readonly loadGenerator: string;
}

export function describeMachine(): MachineDescription {
  const kernel = release().split(".").slice(0, 2).join(".");
  const isInstalled = Bun.which("nginx") !== null;
  const nginx = isInstalled ? Bun.spawnSync(["nginx", "-v"]).stderr.toString() : "";
  return {
    system: `${systemName()} ${kernel}`,
    cores: navigator.hardwareConcurrency,
    processor: cpus()[0]?.model.trim() ?? "unknown",
    runtime: `Bun ${Bun.version}`,
    nginx: /nginx\/([0-9.]+)/.exec(nginx)?.[1] ?? "none",
    loadGenerator: loadGenerator(),
  };
}
