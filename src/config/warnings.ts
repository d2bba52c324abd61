import { isLoopback } from "../domain/host-list.ts";
import type { Config } from "./config.ts";

/** What a file that is good may have wrong, each with what to change. */
export function configWarnings({ listen, admin }: Pick<Config, "listen" | "admin">): string[] {
  const isOpen = !isLoopback(listen.admin.hostname);
  return isOpen && !isProtected(admin.publicUrl) ? [openAdmin(listen.admin.hostname)] : [];
}

/** By TLS in front, or because no other machine is meant to reach it. */
function isProtected(publicUrl: string | undefined): boolean {
  const url = publicUrl === undefined ? null : URL.parse(publicUrl);
  return url !== null && (url.protocol === "https:" || isLoopback(url.hostname));
}

function openAdmin(hostname: string): string {
  return (
    `listen.admin: ${hostname} is reached by other machines, without TLS: passwords, tokens and new ` +
    "API keys can be read on the way. Listen at 127.0.0.1, or put a proxy with TLS in front and set " +
    "admin.public_url to its https address."
  );
}
