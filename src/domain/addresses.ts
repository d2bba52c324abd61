/** Where the servers of Valkey or Redis are, and how to sign in. */
export interface ValkeyAddress {
  readonly topology: "single" | "sentinel" | "cluster";
  /** The server; all Sentinels; some servers of a cluster. */
  readonly hosts: readonly HostAndPort[];
  /** The name under which Sentinels know the primary. */
  readonly service: string;
  readonly isTls: boolean;
  readonly username: string;
  readonly password: string;
  readonly database: number;
}

interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

export const escapedSigns = "; write / # ? % @ in a password as %2F %23 %3F %25 %40";

export const valkeyUrlForms =
  "valkey://USER:PASSWORD@HOST:PORT/DATABASE, valkey+sentinel://HOST:PORT,HOST:PORT/SERVICE or " +
  "valkey+cluster://HOST:PORT,HOST:PORT; valkeys:// and so on with TLS";

const urlPattern =
  /^(?:valkey|redis)(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^?#]*))?$/i;
const hostPattern = /^(\[[0-9a-f:]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;

/** Undefined: the text is not such a URL. */
export function parseValkeyUrl(url: string): ValkeyAddress | undefined {
  const found = urlPattern.exec(url);
  if (found === null) return undefined;
  const [, tls = "", topology = "single", user = "", hostList = "", path = ""] = found;
  const sort = topologyOf(topology);
  const defaultPort = sort === "sentinel" ? 26_379 : 6_379;
  const hosts = hostList.split(",").map((host) => parseHost(host, defaultPort));
  const known = hosts.filter((host) => host !== undefined);
  const { service, database } = parsePath(sort, path);
  if (known.length !== hosts.length || database === undefined) return undefined;
  if (sort === "single" && hosts.length > 1) return undefined;
  if (sort === "sentinel" && service === "") return undefined;
  const [username = "", ...password] = user.split(":");
  return {
    topology: sort,
    hosts: known,
    service,
    isTls: tls !== "",
    username: decoded(username),
    password: decoded(password.join(":")),
    database,
  };
}

/** The URL for messages: without its password. */
export function nameOfValkey(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//");
}

/** Equal for settings that lead to the same data: neither the user nor the password. */
export function identityOfValkey(url: string): string {
  const address = parseValkeyUrl(url);
  if (address === undefined) return nameOfValkey(url);
  const { topology, hosts, service, database } = address;
  const places = hosts.map(({ host, port }) => `${host.toLowerCase()}:${port}`).toSorted();
  return [topology, places.join(","), service, database].join("/");
}

function topologyOf(text: string): ValkeyAddress["topology"] {
  const lower = text.toLowerCase();
  return lower === "sentinel" || lower === "cluster" ? lower : "single";
}

function parseHost(text: string, defaultPort: number): HostAndPort | undefined {
  const [, host, port] = hostPattern.exec(text) ?? [];
  if (host === undefined) return undefined;
  const number = port === undefined ? defaultPort : Number(port);
  return number < 1 || number > 65_535 ? undefined : { host, port: number };
}

/** A cluster has only database 0; Sentinels take a service and then a database. */
function parsePath(topology: ValkeyAddress["topology"], path: string) {
  const [service = "", number = ""] = topology === "sentinel" ? path.split("/", 2) : ["", path];
  const isNumber = /^\d{0,5}$/.test(number);
  const database = isNumber ? Number(number) : undefined;
  return { service, database: topology === "cluster" && number !== "" ? undefined : database };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A database's URL for messages: without its password and options. */
export function nameOfDatabase(url: string): string {
  const { protocol, username, host, pathname } = new URL(url);
  return `${protocol}//${username === "" ? "" : `${username}@`}${host}${pathname}`;
}

/** The modes that mean `verify-full` here, in a URL of PostgreSQL; other programs verify less. */
export const verifiedSslModes = /(?<before>[?&]sslmode=)(?<mode>prefer|require|verify-ca)(?=&|#|$)/;

/** Such a mode of a URL; undefined if it has none, or asks for the meaning of other programs. */
export function verifiedSslMode(url: string): string | undefined {
  if (/[?&]uselibpqcompat=true(?=&|#|$)/.test(url)) return undefined;
  return verifiedSslModes.exec(url)?.groups?.["mode"];
}
