// Paired devices, and those that want to be.
import type { LinkDeviceInfo, LinkDiscoveredPeer, LinkPairingRequestDto } from '../../rpc/rpc';
import { session } from '../../commands/session.svelte';

/** What the screen shows of the device link. */
export const link = {
  /** The owner has it switched on. */
  get isThere(): boolean {
    return session.slices.gateway?.linkEnabled ?? false;
  },
  get devices(): LinkDeviceInfo[] {
    return session.slices.linkedDevices;
  },
  get requests(): LinkPairingRequestDto[] {
    return session.slices.linkPairingRequests;
  },
  get nearby(): LinkDiscoveredPeer[] {
    return session.slices.linkDiscovered;
  },
};
