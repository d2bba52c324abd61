import type { ListenAddress } from "../../config/config.ts";
import { readLocalAccess } from "../../control/sign-in/bootstrap/local-access.ts";
import { errorCode, isRunning } from "../../domain/system-files.ts";
import type { CommandIo } from "../command.ts";
import { commandLine } from "../program.ts";
import type { Settings } from "./load-settings.ts";
import { withListeners, type ServeArguments } from "./serve-options.ts";
import { startErrorOf, whoUses } from "./start-messages.ts";

const listeners = ["data", "admin"] as const;

interface Trouble {
  readonly listener: (typeof listeners)[number];
  readonly address: ListenAddress;
  readonly code: string;
}

/**
 * Tries the addresses before anything else is opened, so that a start at a taken port prints one
 * sentence and nothing else. Throws `StartError`.
 */
export async function checkAddresses(
  { config, path }: Settings,
  args: ServeArguments,
  io: CommandIo,
): Promise<void> {
  const { listen, dataDir } = withListeners(config, args);
  const troubles = listeners.flatMap((listener) => {
    const address = listen[listener];
    const code = whyNot(address);
    return code === undefined ? [] : [{ listener, address, code }];
  });
  if (troubles.length === 0) return;
  // The usual cause: the same gateway runs already.
  const { pid } = (await readLocalAccess(dataDir)) ?? {};
  const isOwn = pid !== undefined && isRunning(pid);
  const reason = isOwn ? await whoUses(dataDir) : explain(troubles, { path, args });
  throw startErrorOf(reason, config, io);
}

/** The system's error code; undefined if the port can be opened. */
function whyNot({ hostname, port }: ListenAddress): string | undefined {
  if (port === 0) return undefined;
  try {
    Bun.listen({ hostname, port, socket: { data: () => undefined } }).stop(true);
    return undefined;
  } catch (error) {
    return errorCode(error) ?? "unknown host";
  }
}

interface Origin {
  readonly path: string | undefined;
  readonly args: ServeArguments;
}

function explain(troubles: readonly Trouble[], { path, args }: Origin): string {
  const faults = troubles.map(({ address, code }) => describe(address, code));
  const options = listeners.flatMap((listener) => {
    const trouble = troubles.find((each) => each.listener === listener);
    const address = trouble === undefined ? args[listener] : another(trouble);
    return address === undefined ? [] : [`--${listener} ${address}`];
  });
  const command = commandLine(`serve ${options.join(" ")}`, args);
  const file = path === undefined ? "" : `, or change \`listen\` in ${path}`;
  return `${faults.join(", and ")}; choose another address, such as \`${command}\`${file}.`;
}

function describe({ hostname, port }: ListenAddress, code: string): string {
  switch (code) {
    case "EADDRINUSE":
      return `port ${port} at ${hostname} is taken by another program`;
    case "EACCES":
      return `port ${port} at ${hostname} needs privileges that this user does not have`;
    case "EADDRNOTAVAIL":
      return `this machine does not have the address ${hostname} for port ${port}`;
    default:
      return `port ${port} at ${hostname} cannot be used (${code})`;
  }
}

/** An address of this machine, at a port that no system reserves. */
function another({ address: { hostname, port }, code }: Trouble): string {
  const isHere = code === "EADDRINUSE" || code === "EACCES";
  const here = hostname.includes(":") ? `[${hostname}]` : hostname;
  const host = isHere ? here : "127.0.0.1";
  return `${host}:${port < 1024 ? port + 8000 : (port + 1000) % 65_536 || 9080}`;
}
