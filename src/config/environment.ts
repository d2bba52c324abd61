import { existsSync } from "node:fs";
import { Secret } from "../domain/keys/secret.ts";

/** The environment variables of the process. */
export interface ProcessEnvironment {
  /** Path of the configuration file: `SLUICE_CONFIG`, else `sluice.yaml` if there is one. */
  readonly configPath: string | undefined;
  /** `SLUICE_ADMIN_URL`: admin address of the gateway that the command line uses. */
  readonly adminUrl: string | undefined;
  /** `SLUICE_ADMIN_TOKEN`: management token that the command line signs in with. */
  readonly adminToken: Secret | undefined;
  /** `BUN_CONFIG_MAX_HTTP_REQUESTS`: most simultaneous fetches, fixed at start. */
  readonly maxHttpRequests: number | undefined;
  /** `SLUICE_WORKER`, set by a supervisor for the processes that it starts. */
  readonly isWorker?: boolean;
  /** `SLUICE_FETCH_LIMIT_BY`, likewise: the origin of a worker's limit of fetches. */
  readonly fetchLimitOwner?: FetchLimitOwner | undefined;
  /** Every variable, for `${NAME}` in the file. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export type FetchLimitOwner = "operator" | "supervisor";

/** The only reader of `process.env`. */
export function readEnvironment(): ProcessEnvironment {
  const variables = Object.freeze({ ...process.env });
  return {
    configPath: readText(variables["SLUICE_CONFIG"]) ?? findConfig(),
    adminUrl: readText(variables["SLUICE_ADMIN_URL"]),
    adminToken: readSecret(variables["SLUICE_ADMIN_TOKEN"]),
    maxHttpRequests: readCount(variables["BUN_CONFIG_MAX_HTTP_REQUESTS"]),
    isWorker: variables["SLUICE_WORKER"] === "1",
    fetchLimitOwner: readOwner(variables["SLUICE_FETCH_LIMIT_BY"]),
    variables,
  };
}

/** The file of this name in the working directory is used unless another one is named. */
const usualConfigPath = "sluice.yaml";

function findConfig(): string | undefined {
  return existsSync(usualConfigPath) ? usualConfigPath : undefined;
}

function readOwner(value: string | undefined): FetchLimitOwner | undefined {
  return value === "operator" || value === "supervisor" ? value : undefined;
}

function readText(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** Removes line ends, which files and shells append and headers cannot contain. */
function readSecret(value: string | undefined): Secret | undefined {
  const text = value?.trim() ?? "";
  return text === "" ? undefined : new Secret(text);
}

function readCount(value: string | undefined): number | undefined {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : undefined;
}
