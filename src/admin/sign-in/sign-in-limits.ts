import type { AdminSettings } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";

/** One address may stand for an office: several people who mistype. */
const usersPerAddress = 5;

/** Limits tries to sign in, whether they succeed or not. Both throw 429. */
export class SignInLimits {
  readonly #users: RateWindow;
  readonly #addresses: RateWindow;

  constructor({ signInsPerMinute }: Pick<AdminSettings, "signInsPerMinute">, clock: Clock) {
    this.#users = new RateWindow(signInsPerMinute, clock);
    this.#addresses = new RateWindow(signInsPerMinute * usersPerAddress, clock);
  }

  countUser(email: string): void {
    this.#users.count(email);
  }

  countAddress(address: string): void {
    this.#addresses.count(addressGroup(address));
  }
}
