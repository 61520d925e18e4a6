"""Software pipelining: multistage buffers, and warp specialization."""
