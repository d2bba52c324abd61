import { dlopen, ptr } from "bun:ffi";

/**
 * Makes a listening socket ignore connection attempts, like a host behind a dead link: a packet
 * filter on the socket drops every packet (Linux: SO_ATTACH_FILTER, socket(7)).
 */
export interface Silence {
  begin(): void;
  end(): void;
}

const solSocket = 1;
const soAttachFilter = 26;
const soDetachFilter = 27;

/** The single instruction "keep 0 bytes of the packet" of classic BPF. */
const dropAll = Uint8Array.from([0x06, 0, 0, 0, 0, 0, 0, 0]);

/** `descriptor` is that of a listening TCP socket. Throws if the system is not Linux. */
export function silenceOf(descriptor: number): Silence {
  if (process.platform !== "linux") throw new Error("black holes need Linux");
  const { symbols } = dlopen("libc.so.6", {
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  });
  // struct sock_fprog: a count, padding, and the address of the instructions.
  const program = new Uint8Array(16);
  const fields = new DataView(program.buffer);
  fields.setUint16(0, 1, true);
  fields.setBigUint64(8, BigInt(ptr(dropAll)), true);
  const set = (option: number): void => {
    const result = symbols.setsockopt(
      descriptor,
      solSocket,
      option,
      ptr(program),
      program.byteLength,
    );
    if (result !== 0) throw new Error(`the system refuses socket option ${option}`);
  };
  return { begin: () => set(soAttachFilter), end: () => set(soDetachFilter) };
}
