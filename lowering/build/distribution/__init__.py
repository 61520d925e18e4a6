"""Which thread has which element, and how elements get to the threads that need them."""
