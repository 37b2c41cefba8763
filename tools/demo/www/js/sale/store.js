/*
 * What a reload of the page must not lose, in the storage of this tab: who the
 * visitor is, and the ticket of the purchase.  Where storage is forbidden the
 * page works without.
 */

const ticketKey = (activity, user) => `seckill.ticket.${activity}.${user}`;

function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    if (value === null) {
      sessionStorage.removeItem(key);
    } else {
      sessionStorage.setItem(key, value);
    }
  } catch {
    /* forbidden or full: a reload starts anew, and posting again is safe */
  }
}

export const savedTicket = (activity, user) => read(ticketKey(activity, user));
export const saveTicket = (activity, user, ticket) => write(ticketKey(activity, user), ticket);
export const savedVisitor = () => read('seckill.visitor');
export const saveVisitor = (user) => write('seckill.visitor', user);
