import { verifiedSslMode } from "../../domain/addresses.ts";
import { isLoopback } from "../../domain/network.ts";
import type { ServedModels } from "../../upstreams/kind.ts";
import type { Config, UpstreamSettings } from "../config.ts";

export type WarnedParts = "listen" | "storage" | "admin" | "environments" | "upstreams";

/** Warnings about a valid file, for operators. `now` is wall clock in milliseconds. */
export function configWarnings(config: Pick<Config, WarnedParts>, now: number): readonly string[] {
  const { listen, admin, storage } = config;
  const sslMode =
    storage.backend === "postgres" ? verifiedSslMode(storage.url.reveal()) : undefined;
  const isOpen = !isLoopback(listen.admin.hostname) && !isProtected(admin.publicUrl);
  const ending = modelWarnings(config, ({ kind, settings }, served) =>
    kind.endingModels?.(settings, served, now),
  );
  return [
    ...(isOpen ? [openAdmin(listen.admin.hostname)] : []),
    ...(sslMode === undefined ? [] : [verifiedAll(sslMode)]),
    ...ending,
  ];
}

/** The warnings and hints that `sluice check-config` prints. */
export function checkWarnings(config: Pick<Config, WarnedParts>, now: number): readonly string[] {
  const doubtful = modelWarnings(config, ({ kind, settings }, served) =>
    kind.doubtfulModels?.(settings, served),
  );
  return [...configWarnings(config, now), ...doubtful];
}

type Warn = (upstream: UpstreamSettings, served: ServedModels) => readonly string[] | undefined;

function modelWarnings(
  { environments, upstreams }: Pick<Config, "environments" | "upstreams">,
  warn: Warn,
): readonly string[] {
  const served = new Map(environments.flatMap(({ models }) => [...models]));
  return [...new Set([...upstreams.values()].flatMap((upstream) => warn(upstream, served) ?? []))];
}

/** Whether TLS is terminated in front of it, or only this machine is meant to connect. */
function isProtected(publicUrl: string | undefined): boolean {
  const url = publicUrl === undefined ? null : URL.parse(publicUrl);
  return url !== null && (url.protocol === "https:" || isLoopback(url.hostname));
}

function verifiedAll(sslMode: string): string {
  return (
    `storage.url: sslmode=${sslMode} is used as verify-full, so certificate and host name are verified, ` +
    "which other programs do not do; write sslmode=verify-full"
  );
}

function openAdmin(hostname: string): string {
  return (
    `listen.admin: ${hostname} is reached by other machines, without TLS: passwords, tokens and new ` +
    "API keys can be read on the way. Listen at 127.0.0.1, or put a proxy with TLS in front and set " +
    "admin.public_url to its https address."
  );
}
