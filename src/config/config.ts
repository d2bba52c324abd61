import type { ImageFetchSettings } from "../domain/upstream-settings.ts";
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
  "data_dir" | "image_fetch" | "upstream_requests" | "environments" | "upstreams" | "models";

/** A valid, immutable configuration. */
export interface Config extends Readonly<Omit<ConfigFile, CombinedKeys>> {
  readonly dataDir: string;
  /** Most concurrent fetches of the process. */
  readonly upstreamRequests: number;
  readonly imageFetch: ImageFetchSettings;
  readonly environments: readonly ConfiguredEnvironment[];
  /** By name. */
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
}

/** Builds the configuration from a file that passed every check. */
export function buildConfig(file: ConfigFile, kinds: readonly UpstreamKind[]): Config {
  const {
    data_dir: dataDir,
    image_fetch: imageFetch,
    upstream_requests: upstreamRequests,
    environments,
    upstreams,
    models,
    ...sections
  } = file;
  const sources = { models, upstreams, kinds };
  return {
    ...sections,
    dataDir,
    imageFetch,
    upstreamRequests,
    environments: environments.map((environment) => buildEnvironment(environment, sources)),
    upstreams: buildUpstreams(upstreams, kinds, (name, kind) => targetsAt(models, name, kind)),
  };
}
