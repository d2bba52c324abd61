import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** From Linux's `asm-generic/socket.h`, `filter.h` and `bpf_common.h`. */
const socketLevel = 1;
const acceptsConnections = 30;
const attachReuseportFilter = 51;
const returnConstant = 0x06;
/** Size of `struct sock_fprog`, without the instructions. */
const programBytes = 16;

/** Names of the C library: glibc, musl. */
const libraries = ["libc.so.6", "libc.so"];

/**
 * The socket behind a listener of this process, which the runtime does not expose. Undefined if this
 * system, other than Linux, does not show it.
 */
export function findListeningSocket(port: number) {
  const system = process.platform === "linux" ? loadSystem() : undefined;
  const fd = system && ownSockets(system, port).find((own) => system.isListening(own));
  if (system === undefined || fd === undefined) return undefined;
  return {
    /**
     * Directs every new connection at the address to this socket, until another socket there is
     * closed. It must be the newest listener at the address. False if the system refuses.
     */
    takeAll: () => takeAll(system, fd),
    /** Connections of this process at the port. */
    countConnections: () =>
      ownSockets(system, port).filter((own) => !system.isListening(own)).length,
    /** Stops listening. Open connections continue; those not accepted yet are lost. */
    close() {
      const nothing = openSync("/dev/null", "r");
      // The runtime closes the descriptor later; it must not belong to another file by then.
      system.replace(nothing, fd);
      closeSync(nothing);
    },
  };
}

/**
 * A filter may choose among sockets with SO_REUSEPORT at one address, by their order. If the chosen
 * socket does not exist, for example after one of them is closed, the system chooses as without a
 * filter.
 */
function takeAll(system: System, fd: number): boolean {
  const last = countListening(readlinkSync(`/proc/self/fd/${fd}`)) - 1;
  // A program of one instruction, which follows it.
  const program = new DataView(new ArrayBuffer(24));
  program.setUint16(0, 1, true);
  program.setBigUint64(8, BigInt(ptr(program) + programBytes), true);
  program.setUint16(programBytes, returnConstant, true);
  program.setUint32(programBytes + 4, last, true);
  return last >= 0 && system.setFilter(fd, program);
}

/** How many sockets listen at the address of this one; `link` is as in `/proc/self/fd`. */
function countListening(link: string): number {
  const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
  for (const table of ["/proc/self/net/tcp", "/proc/self/net/tcp6"]) {
    const lines = readFileSync(table, "latin1").trim().split("\n");
    const sockets = lines
      .map((line) => line.trim().split(/\s+/))
      .filter((row) => row[stateColumn] === listening);
    const own = sockets.find((row) => row[inodeColumn] === inode);
    const address = own?.[addressColumn];
    if (address === undefined) continue;
    return sockets.filter((row) => row[addressColumn] === address).length;
  }
  return 0;
}

const addressColumn = 1;
const stateColumn = 3;
const inodeColumn = 9;
const listening = "0A";

/** Descriptors of sockets that are bound to the port. */
function ownSockets(system: System, port: number): readonly number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => system.portOf(fd) === port);
}

type System = NonNullable<ReturnType<typeof loadSystem>>;

function loadSystem() {
  const { i32, u32, pointer } = FFIType;
  for (const name of libraries) {
    try {
      const { symbols } = dlopen(name, {
        getsockname: { args: [i32, pointer, pointer], returns: i32 },
        getsockopt: { args: [i32, i32, i32, pointer, pointer], returns: i32 },
        setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
        dup2: { args: [i32, i32], returns: i32 },
      });
      return {
        isListening(fd: number): boolean {
          const value = new Int32Array(1);
          const size = new Uint32Array([value.byteLength]);
          const args = [fd, socketLevel, acceptsConnections] as const;
          return symbols.getsockopt(...args, value, size) === 0 && value[0] === 1;
        },
        /** Undefined for files other than bound sockets of TCP. */
        portOf(fd: number): number | undefined {
          const address = new DataView(new ArrayBuffer(128));
          const size = new Uint32Array([address.byteLength]);
          if (symbols.getsockname(fd, ptr(address), size) !== 0) return undefined;
          return internetFamilies.has(address.getUint16(0, true))
            ? address.getUint16(2)
            : undefined;
        },
        setFilter: (fd: number, program: DataView): boolean =>
          symbols.setsockopt(fd, socketLevel, attachReuseportFilter, ptr(program), programBytes) ===
          0,
        /** Makes the descriptor `fd` refer to the file of `by`. */
        replace: (by: number, fd: number) => void symbols.dup2(by, fd),
      };
    } catch {
      // Try the next library.
    }
  }
  return undefined;
}

/** AF_INET and AF_INET6. */
const internetFamilies: ReadonlySet<number> = new Set([2, 10]);
