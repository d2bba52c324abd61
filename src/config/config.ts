import { join, resolve } from "node:path";
import type { ImageFetchSettings, StoredEndUsers } from "../domain/upstream-settings.ts";
import type { UpstreamKind } from "../upstreams/kind.ts";
import type { ConfigFile } from "./schema.ts";
import { buildEnvironment, type ConfiguredEnvironment } from "./sections/environments.ts";
import { targetsAt } from "./sections/models.ts";
import { buildUpstreams, type UpstreamSettings } from "./sections/upstreams.ts";

export type { ListenAddress } from "../settings/values.ts";
export type { AdminSettings, SsoSettings } from "./sections/admin.ts";
export type { UpstreamSettings } from "./sections/upstreams.ts";

/** Keys that `buildConfig` renames or combines. */
type CombinedKeys =
  | "data_dir"
  | "image_fetch"
  | "upstream_requests"
  | "environments"
  | "upstreams"
  | "models"
  | "end_users";

export interface Config extends Readonly<Omit<ConfigFile, CombinedKeys>> {
  /** Absolute, as the path of a database file is. */
  readonly dataDir: string;
  /** Most concurrent fetches of the process. */
  readonly upstreamRequests: number;
  readonly imageFetch: ImageFetchSettings;
  readonly endUsers: StoredEndUsers;
  readonly environments: readonly ConfiguredEnvironment[];
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
}

export function buildConfig(file: ConfigFile, kinds: readonly UpstreamKind[]): Config {
  const {
    data_dir: namedDir,
    storage,
    image_fetch: imageFetch,
    upstream_requests: upstreamRequests,
    environments,
    upstreams,
    models,
    end_users: endUsers,
    ...sections
  } = file;
  const dataDir = resolve(namedDir);
  const sources = { models, upstreams, kinds };
  return {
    ...sections,
    dataDir,
    storage:
      storage.backend === "sqlite" ? { ...storage, path: fileIn(dataDir, storage) } : storage,
    imageFetch,
    upstreamRequests,
    endUsers,
    environments: environments.map((environment) => buildEnvironment(environment, sources)),
    upstreams: buildUpstreams(upstreams, kinds, (name, kind) => targetsAt(models, name, kind)),
  };
}

/** The file of the database: by default in the data directory. */
function fileIn(dataDir: string, { path }: { readonly path: string }): string {
  if (path === ":memory:") return path;
  return path === "" ? join(dataDir, "sluice.db") : resolve(path);
}
