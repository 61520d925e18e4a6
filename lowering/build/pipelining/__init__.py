"""What runs ahead: multistage buffers, and warps with roles of their own."""
