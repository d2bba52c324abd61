import { dlopen, ptr } from "bun:ffi";

/**
 * Makes a listening socket ignore whoever wants to connect, as a host behind a dead link does: a
 * packet filter on the socket drops every packet (Linux: SO_ATTACH_FILTER, socket(7)).
 */
export interface Silence {
  begin(): void;
  end(): void;
  /** Packets that were dropped so far: each is one attempt to connect, or its repetition. */
  readonly dropped: number;
}

const solSocket = 1;
const soAttachFilter = 26;
const soDetachFilter = 27;
const soMeminfo = 55;
/** Of the nine words that SO_MEMINFO gives. */
const dropsIndex = 8;

/** The one instruction "return 0 bytes of the packet", as classic BPF has it. */
const dropAll = Uint8Array.from([0x06, 0, 0, 0, 0, 0, 0, 0]);

/** `descriptor` is that of a listening TCP socket. Throws where the system is not Linux. */
export function silenceOf(descriptor: number): Silence {
  if (process.platform !== "linux") throw new Error("black holes need Linux");
  const { symbols } = dlopen("libc.so.6", {
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  });
  // struct sock_fprog: a count, padding, and the address of the instructions.
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, 1, true);
  program.setBigUint64(8, BigInt(ptr(dropAll)), true);
  const set = (option: number): void => {
    const value = new Uint8Array(program.buffer);
    const result = symbols.setsockopt(descriptor, solSocket, option, ptr(value), value.length);
    if (result !== 0) throw new Error(`the system refuses socket option ${option}`);
  };
  return {
    begin: () => set(soAttachFilter),
    end: () => set(soDetachFilter),
    get dropped() {
      const words = new Uint32Array(9);
      const length = new Uint32Array([words.byteLength]);
      symbols.getsockopt(descriptor, solSocket, soMeminfo, ptr(words), ptr(length));
      return words[dropsIndex] ?? 0;
    },
  };
}
