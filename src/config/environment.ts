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
  /** `SLUICE_WORKER`, set by a supervisor for the processes that it starts. */
  readonly isWorker?: boolean;
  /** Every variable, for `${NAME}` in the file. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** The only reader of `process.env`. */
export function readEnvironment(): ProcessEnvironment {
  const variables = Object.freeze({ ...process.env });
  return {
    configPath: readText(variables["SLUICE_CONFIG"]) ?? findConfig(),
    adminUrl: readText(variables["SLUICE_ADMIN_URL"]),
    adminToken: readSecret(variables["SLUICE_ADMIN_TOKEN"]),
    isWorker: variables["SLUICE_WORKER"] === "1",
    variables,
  };
}

/** The file of this name in the working directory is used unless another one is named. */
const usualConfigPath = "sluice.yaml";

function findConfig(): string | undefined {
  return existsSync(usualConfigPath) ? usualConfigPath : undefined;
}

function readText(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** Removes line ends, which files and shells append and headers cannot contain. */
function readSecret(value: string | undefined): Secret | undefined {
  const text = value?.trim() ?? "";
  return text === "" ? undefined : new Secret(text);
}
